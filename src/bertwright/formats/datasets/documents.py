"""Running text in a tokenised dataset saved with Hugging Face `datasets`: each row is a document of one sentence.

**Is a row an example or text?** The files do not say. The vocabulary's [CLS] and [SEP] would tell, but `inspect` may
not know them, and examples made with another vocabulary would then be mistaken for text and used for training. So the
rows are compared with each other: examples all begin with the same id, which occurs nowhere else, and all end with
another one, whatever their names; text does not. Columns that only examples have (`labels`, `next_sentence_label`)
decide first. A wrong guess causes an error later, never a wrong example: if text is mistaken for examples, rows do not
begin with [CLS]; if examples are mistaken for text, too many rows hold special ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.examples.instances import Ints, ends, stretches
from bertwright.formats.columns import MAX_LENGTH, Place
from bertwright.formats.datasets.rows import (
    aligned_values,
    find_padding,
    lengths_of,
    list_values,
    open_batches,
    rows_of,
)
from bertwright.formats.errors import NotExamplesError, ShardError, reading
from bertwright.formats.format import DocumentFormat, TokenDocuments

_SHOWN = 1 << 18
"""Approximate number of tokens at the beginning of a file that are used to distinguish text from examples."""
_FEW = 0.01
"""Share of examples that may have a second [CLS]: some tokenizers read "[CLS]" in an article as the special token."""


@dataclass(frozen=True)
class Rows:
    """The rows of a file as tokenised documents."""

    file: Path

    @cached_property
    def lengths(self) -> Ints:
        """[D] lengths of the rows, with padding and special tokens; for Parquet this decodes the entire column."""
        of_batches, at = [np.zeros(0, np.int64)], 0
        with open_batches(self.file) as batches:
            for batch in batches:
                # Checks only the ends of the lists; `full`, used when rows are read, checks every value.
                batch.validate()
                of_batches.append(lengths_of(Place(self.file, at, None), batch, "input_ids"))
                at += len(batch)
        lengths = np.concatenate(of_batches)
        # Offsets may decrease in a damaged file, which the quick check does not detect.
        if lengths.min(initial=0) < 0:
            raise ShardError(self.file, "a list in input_ids ends before it begins")
        return lengths

    @property
    def counts(self) -> Ints:
        """[D] as `DocumentFile.counts`: one sentence for each row."""
        return np.ones(len(self.lengths), np.int64)

    def pieces(self, tokens: int) -> list[tuple[int, int]]:
        """As `DocumentFile.pieces`; padding counts."""
        return stretches(self.lengths, tokens) if len(self.lengths) else []

    def read(self, first: int, stop: int) -> TokenDocuments:
        """As `DocumentFile.read`, without padding and without the special tokens that `special_tokens_mask` marks."""
        ids_of_batches, sizes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for place, batch in self._batches(first, stop):
            ids, whole = list_values(place, batch, "input_ids")
            kept, _ = find_padding(place, batch, whole)
            if "special_tokens_mask" in batch.schema.names:
                kept &= aligned_values(place, batch, "special_tokens_mask", whole) == 0
            # Whether an id is too large depends on the vocabulary; a negative id is always damage.
            if len(negative := np.flatnonzero(ids < 0)):
                row = place.first_row + np.searchsorted(ends(whole), negative[0], side="right") - 1
                raise ShardError(self.file, f"row {row:,} has a negative id")
            ids_of_batches.append(ids[kept])
            sizes.append(np.diff(ends(kept)[ends(whole)]))
        return TokenDocuments(np.concatenate(ids_of_batches), np.concatenate(sizes), np.ones(stop - first, np.int64))

    def are_text(self) -> bool | None:
        """Whether the first rows are running text, not examples; None when fewer than two rows do not show it.

        A single row that is too long for an example counts as text: a row may be a book.
        """
        begins, lasts, seen = list[int](), list[int](), Counter[int]()
        for place, batch in self._batches(*next(iter(self.pieces(_SHOWN)), (0, 0))):
            ids, whole = list_values(place, batch, "input_ids")
            _, sizes = find_padding(place, batch, whole)
            first = ends(whole)[:-1][sizes > 0]
            begins += ids[first].tolist()
            lasts += ids[first + sizes[sizes > 0] - 1].tolist()
            seen.update(ids.tolist())
        # The ends of a single row prove nothing; without the length check, a set of books was rejected as damaged.
        if len(begins) < 2:
            return bool(self.lengths.max(initial=0) > MAX_LENGTH) or None
        alike = len({*begins}) == len({*lasts}) == 1 and begins[0] != lasts[0]
        # An id that begins all rows and also occurs inside them is a word.
        return not alike or seen[begins[0]] > (1 + _FEW) * len(begins)

    def _batches(self, first: int, stop: int) -> Iterator[tuple[Place, Any]]:
        """Yield the rows `first` to `stop`, checked, in the batches of the file."""
        for at, part in rows_of(self.file, first, stop):
            # A range may end in a batch that is read already, outside the block that names the file.
            with reading(self.file):
                part.validate(full=True)
            yield Place(self.file, at, None), part


def open_rows(file: Path) -> Rows:
    """Open the rows of a file. Raises `ShardError` if it has no column `input_ids`."""
    with open_batches(file) as batches:
        if "input_ids" not in batches.schema.names:
            raise NotExamplesError(file, "it has no column input_ids: it is not tokenised")
    return Rows(file)


FORMAT = DocumentFormat("datasets", open_rows)
