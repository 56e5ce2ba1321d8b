"""What is to be written, and how its folders and files are called; NVIDIA's names say how the examples were made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from bertwright.core.errors import RecipeError
from bertwright.formats.format import Kind

PADDED: tuple[Kind, ...] = ("hdf5", "tfrecord")
"""The formats whose examples all have one length and one room for predictions."""

Split = Literal["training", "test"]

OTHER_SPLITS = ("test", "validation", "eval")
"""Names of folders whose files are not for training."""

SPLITS = ("train", "training", *OTHER_SPLITS)
"""Names of folders that say what their files are for."""


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


def nvidia_file(name: str, split: Split, number: int) -> str:
    """Such as `wikicorpus_hu_training_0.hdf5`; NVIDIA's trainer takes the files with "training" in their names."""
    return f"{name}_{split}_{number}.hdf5"


def file_name(target: Target, name: str, split: Split, number: int, files: int) -> str:
    """The name of file `number` of `files`, as the readers of the format ask for it.

    MLPerf's sampler takes the files with `part_` in their names.
    """
    if target.kind == "hdf5":
        return nvidia_file(name, split, number)
    of = f"{number:05}-of-{files:05}"
    names = {
        "hdf5-varlen": f"part_{of.replace('-', '_')}.hdf5",
        "tfrecord": f"part-{of}{'.gz' if target.compress else ''}",
        "lddl": f"shard-{number}.parquet",
        "datasets": f"data-{of}.arrow",
    }
    return names[target.kind]


def folder_name(target: Target, split: Split) -> str:
    """The folder of a split inside that of its set; NVIDIA's lie together.

    Other readers take whatever lies in or below a folder, so held-out examples must not lie below the training ones.
    """
    return "" if target.kind == "hdf5" else {"training": "train", "test": "test"}[split]


def shares(target: Target, examples: int, files: int) -> list[int]:
    """Where each of `files` files begins among the examples, and where the last one ends; none would be empty.

    LDDL's loader refuses files unless some hold n examples and the others n + 1: one of them all, and files of one
    size, are out of the question. So there are two at least, and where all would be of one size the last example is
    left out.
    """
    files = min(files, examples)
    if target.kind == "lddl" and examples > 2:
        files = max(2, min(files, examples // 2))
        examples -= examples % files == 0
    return [examples * number // files for number in range(files + 1)] if files else [0]
