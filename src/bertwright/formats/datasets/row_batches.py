"""The batches of a file of tokenised rows: an Arrow stream as `datasets` saves it, or Parquet as its hub keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertwright.formats.datasets.arrow_checks import open_stream
from bertwright.formats.parquet_checks import is_parquet, open_parquet_lists

COLUMNS = (
    "input_ids",
    "attention_mask",
    "special_tokens_mask",
    "token_type_ids",
    "labels",
    "next_sentence_label",
)
"""The columns that are read, where they are there."""


@contextmanager
def open_batches(file: Path) -> Iterator[Any]:
    """The batches of `file`, with their `schema`; what goes wrong inside names `file`."""
    with open_parquet_lists(file, COLUMNS) if is_parquet(file) else open_stream(file) as batches:
        yield batches
