"""The types that the docstrings of `Batch` promise, of arrays and of tensors."""

from typing import Any

from bertwright.examples.batch import Batch

TYPES = {
    "token_ids": "int64",
    "position_ids": "int64",
    "segment_ids": "int64",
    "cu_seqlens": "int32",
    "cu_rows": "int32",
    "prediction_positions": "int64",
    "labels": "int64",
    "weights": "float32",
    "sequence_labels": "int64",
    "sequence_weights": "float32",
}


def types(batch: Batch[Any]) -> dict[str, str]:
    """The type of every array of a batch."""
    found = {name: value for name, value in vars(batch).items() if name != "max_row"}
    return {name: str(value.dtype).removeprefix("torch.") for name, value in found.items()}
