"""What is to be written, and how its folders and files are called; NVIDIA's names say how the examples were made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from bertwright.core.errors import RecipeError
from bertwright.examples.formats.format import Kind

PADDED: tuple[Kind, ...] = ("hdf5", "tfrecord")
"""The formats whose examples all have one length and one room for predictions."""

NVIDIA: tuple[Kind, ...] = ("hdf5", "hdf5-varlen")
"""The formats whose files have NVIDIA's names."""


@dataclass(frozen=True)
class Target:
    """What is to be written."""

    kind: Kind
    length: int | None = None
    """Room for tokens in padded formats; None: that of the source."""
    predictions: int | None = None
    """Room for predictions in padded formats; None: that of the source."""
    compress: bool = False
    """gzip TFRecord files."""


def kind_of(name: str) -> Kind:
    """The format called `name`, if it is one that can be written."""
    kinds: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
    if name not in kinds:
        raise RecipeError(f"there is no format {name!r} to write; there are {', '.join(kinds)}.")
    return kinds[name]


def nvidia_folder(
    lower_case: bool, strip_accents: bool, length: int, predictions: int, mask_rate: float, seed: int, passes: int
) -> str:
    """Such as `hdf5_lower_case_1_seq_len_128_max_pred_20_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5`.

    NVIDIA's builder lower-cases and strips accents whatever its folder says. Here `lower_case_1` means that both were
    done and `lower_case_0` that neither was; a vocabulary that does one of them gets a name that says so
    (`lower_case_1_accents_kept`, `lower_case_0_accents_stripped`). No known loader reads the folder's name.
    """
    case = f"lower_case_{int(lower_case)}"
    if lower_case != strip_accents:
        case += "_accents_stripped" if strip_accents else "_accents_kept"
    return (
        f"hdf5_{case}_seq_len_{length}_max_pred_{predictions}_masked_lm_prob_{mask_rate}"
        f"_random_seed_{seed}_dupe_factor_{passes}"
    )


def nvidia_file(name: str, split: str, number: int) -> str:
    """Such as `wikicorpus_hu_training_0.hdf5`; `split` is "training" or "test". NVIDIA's trainer wants "training"."""
    return f"{name}_{split}_{number}.hdf5"


def file_name(target: Target, name: str, split: str, number: int, files: int) -> str:
    """The path of file `number` of `files` inside the folder of its set; `split` is "training" or "test"."""
    if target.kind in NVIDIA:
        return nvidia_file(name, split, number)
    if split == "test":
        return "test/" + file_name(target, name, "training", number, files)
    if target.kind == "tfrecord":
        return f"part-{number:05}-of-{files:05}" + (".gz" if target.compress else "")
    return f"shard-{number}.parquet" if target.kind == "lddl" else f"data-{number:05}-of-{files:05}.arrow"
