"""What the samplers of MLPerf's BERT make of folders, restated plainly: NVIDIA's submissions from v1 on (HDF5 of runs,
run_pretraining.py) and the choice of evaluation examples (mlcommons/training, pick_eval_samples.py).
"""

from pathlib import Path

import h5py
import numpy as np


def training_files(folder: Path) -> list[Path]:
    """The files it shuffles and reads: those that lie in the folder itself with `part_` in their names."""
    return sorted(file for file in folder.iterdir() if file.is_file() and "part_" in file.name)


def evaluation(folder: Path, most: int, length: int) -> list[dict[str, list[int]]]:
    """The first examples of the files whose path has `part` in it, which lie in a folder of their own."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and "part" in str(file))
    return [row for file in files for row in read(file, length)][:most]


def read(file: Path, length: int) -> list[dict[str, list[int]]]:
    """Its examples padded with zeros; labels are zero where nothing is predicted."""
    found = []
    with h5py.File(file, "r") as handle:
        names = ("input_ids", "segment_ids", "masked_lm_positions", "masked_lm_ids", "next_sentence_labels")
        for ids, segments, positions, originals, following in zip(*(handle[name][:] for name in names), strict=True):
            labels = np.zeros(length, np.int64)
            labels[positions.astype(np.int64)] = originals
            pad = [0] * (length - len(ids))
            found.append(
                {
                    "ids": [*ids.tolist(), *pad],
                    "mask": [1] * len(ids) + pad,
                    "segments": [*segments.tolist(), *pad],
                    "labels": labels.tolist(),
                    "next": int(following),
                }
            )
    return found


def picked(examples: int, most: int) -> list[int]:
    """Which examples are evaluated on."""
    ratio = examples / most
    return [int(number * ratio) for number in range(most)]
