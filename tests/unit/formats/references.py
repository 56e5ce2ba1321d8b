"""The formats written and read plainly, after the published programs, for comparison."""

from pathlib import Path

import h5py
import numpy as np

from bertwright.examples.instances import Instances


def rows_of(found: Instances) -> list[dict[str, list[int]]]:
    """Examples as plain lists."""
    rows = []
    for row in range(len(found)):
        span = slice(found.cu_seqlens[row], found.cu_seqlens[row + 1])
        masks = slice(found.cu_predictions[row], found.cu_predictions[row + 1])
        length = span.stop - span.start
        rows.append(
            {
                "ids": found.token_ids[span].tolist(),
                "segments": [int(i >= found.second[row]) for i in range(length)],
                "positions": found.positions[masks].tolist(),
                "labels": found.labels[masks].tolist(),
                "next": int(found.next_sentence_labels[row]),
            }
        )
    return rows


def write_nvidia(file: Path, rows: list[dict], length: int, predictions: int, compression: str | None = "gzip") -> None:
    """create_pretraining_data.py, write_instance_to_example_file: numpy arrays filled row by row."""
    n = len(rows)
    arrays = {
        "input_ids": np.zeros([n, length], "int32"),
        "input_mask": np.zeros([n, length], "int32"),
        "segment_ids": np.zeros([n, length], "int32"),
        "masked_lm_positions": np.zeros([n, predictions], "int32"),
        "masked_lm_ids": np.zeros([n, predictions], "int32"),
        "next_sentence_labels": np.zeros(n, "int32"),
    }
    for i, row in enumerate(rows):
        size, masks = len(row["ids"]), len(row["positions"])
        arrays["input_ids"][i, :size] = row["ids"]
        arrays["input_mask"][i, :size] = 1
        arrays["segment_ids"][i, :size] = row["segments"]
        arrays["masked_lm_positions"][i, :masks] = row["positions"]
        arrays["masked_lm_ids"][i, :masks] = row["labels"]
        arrays["next_sentence_labels"][i] = row["next"]
    types = {"input_mask": "i1", "segment_ids": "i1", "next_sentence_labels": "i1"}
    with h5py.File(file, "w") as handle:
        for key, array in arrays.items():
            handle.create_dataset(key, data=array, dtype=types.get(key, "i4"), compression=compression)


def nvidia_loader(file: Path, row: int, max_pred_length: int) -> tuple[list[int], ...]:
    """run_pretraining.py, pretraining_dataset.__getitem__, without torch: ids, segments, mask, labels (-1), next."""
    with h5py.File(file, "r") as handle:
        keys = [
            "input_ids",
            "input_mask",
            "segment_ids",
            "masked_lm_positions",
            "masked_lm_ids",
            "next_sentence_labels",
        ]
        ids, mask, segments, positions, labels, following = (np.asarray(handle[key][:])[row] for key in keys)
    masked_lm_labels = np.ones(len(ids), np.int64) * -1
    index = max_pred_length
    padded = (positions == 0).nonzero()[0]
    if len(padded) != 0:
        index = padded[0]
    masked_lm_labels[positions[:index]] = labels[:index]
    return ids.tolist(), segments.tolist(), mask.tolist(), masked_lm_labels.tolist(), [int(following)]


def write_packed(file: Path, rows: list[dict], per_row: int) -> None:
    """NVIDIA's MLPerf packing script: several examples per row, positions offset into the row."""
    groups = [rows[i : i + per_row] for i in range(0, len(rows), per_row)]
    keys = ["input_ids", "segment_ids", "packed_input_len", "masked_lm_positions", "masked_lm_ids"]
    keys += ["packed_masked_lm_len", "next_sentence_labels"]
    with h5py.File(file, "w") as handle:
        sets = {}
        for key in keys:
            kind = h5py.vlen_dtype(np.dtype("int8" if key in ("segment_ids", "next_sentence_labels") else "int16"))
            sets[key] = handle.create_dataset(key, (len(groups),), dtype=kind)
        for number, group in enumerate(groups):
            found: dict[str, list[int]] = {key: [] for key in keys}
            offset = 0
            for row in group:
                found["input_ids"] += row["ids"]
                found["segment_ids"] += row["segments"]
                found["masked_lm_positions"] += [position + offset for position in row["positions"]]
                found["masked_lm_ids"] += row["labels"]
                found["next_sentence_labels"] += [row["next"]]
                found["packed_input_len"] += [len(row["ids"])]
                found["packed_masked_lm_len"] += [len(row["positions"])]
                offset += len(row["ids"])
            for key, values in found.items():
                sets[key][number] = values
