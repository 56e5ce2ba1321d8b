"""NVIDIA's names of folders and files, which say how the examples were made."""

from __future__ import annotations

from bertwright.formats.format import FileNumber, Provenance, Split


def set_folder(made: Provenance) -> str:
    """The folder of a set as NVIDIA's scripts lay it out, with the name of the data set below."""
    named = nvidia_folder(
        made.lower_case, made.strip_accents, made.length, made.predictions, made.mask_rate, made.seed, made.passes
    )
    return f"{named}/{made.name}"


def file_name(file: FileNumber) -> str:
    """As `nvidia_file`."""
    return nvidia_file(file.name, file.split, file.number)


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
