"""What LDDL's loader makes of a folder (lddl/torch/datasets.py and bert.py), restated plainly.

Which files it takes, what it refuses, how many examples it gives, and what an example becomes.
"""

import io
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq


def loaded(folder: Path, vocabulary: list[str], world: int = 1, workers: int = 1) -> list[dict[str, list[int]]]:
    """Every example of the files it would read. AssertionError where the loader has one."""
    files = sorted(file for file in folder.rglob("*") if ".parquet" in file.suffix and file.is_file())
    assert files, "it finds nothing"
    assert len(files) % (world * workers) == 0, "every worker of every rank reads as many files"
    tables = [pq.read_table(file).to_pylist() for file in files]
    sizes = [len(table) for table in tables]
    assert min(sizes) + 1 == max(sizes), f"files of n and n + 1 examples, not {sorted(set(sizes))}"
    return [_encoded(row, vocabulary) for table in tables for row in table]


def per_epoch(folder: Path) -> int:
    """Examples that an epoch gives: as many of each file as the smallest has."""
    sizes = [pq.read_metadata(file).num_rows for file in folder.rglob("*") if ".parquet" in file.suffix]
    return min(sizes) * len(sizes)


def _encoded(row: dict, vocabulary: list[str]) -> dict[str, list[int]]:
    number = {piece: index for index, piece in enumerate(vocabulary)}
    first, second = row["A"].split(), row["B"].split()
    ids = [number[piece] for piece in ("[CLS]", *first, "[SEP]", *second, "[SEP]")]
    labels = [-1] * len(ids)
    positions = np.load(io.BytesIO(row["masked_lm_positions"]), allow_pickle=False)
    for position, piece in zip(positions.tolist(), row["masked_lm_labels"].split(), strict=True):
        labels[position] = number[piece]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    return {"ids": ids, "segments": segments, "labels": labels, "next": int(row["is_random_next"])}
