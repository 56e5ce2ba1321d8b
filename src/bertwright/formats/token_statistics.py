"""Statistics of a set of tokenised documents, and the faults that they reveal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from bertwright.examples.information import unknown_words
from bertwright.examples.instances import ends
from bertwright.formats.detect import FileSet, open_documents
from bertwright.formats.errors import ShardError
from bertwright.formats.format import TokenDocuments
from bertwright.formats.repetitions import BottomK, row_hashes
from bertwright.formats.vocabulary_fit import ENTRIES

_AT_ONCE = 1 << 20
"""Approximate number of tokens read at a time."""
_LENGTHS = (8, 16, 32, 64, 128, 256, 512)
_SHARED = 0.001
"""Share of documents in several files above which a fault is reported."""


def token_statistics(
    file_set: FileSet, vocabulary: Sequence[str] | None = None, limit: int | None = None
) -> dict[str, Any]:
    """Return the statistics, `faults` and `doubts` (sentences) of a set of token documents; arguments as for
    `statistics`.

    `single` counts the documents of one sentence: if nearly all are, no pairs can be built from them.
    """
    tally = _Tally(file_set, vocabulary)
    for file in file_set.files:
        tally.texts.begin_file()
        try:
            documents = open_documents(file, file_set.kind)
            most = sys.maxsize if limit is None else limit
            for first, stop in documents.pieces(_AT_ONCE):
                if first < most:
                    tally.add(documents.read(first, min(stop, most)))
        except ShardError as error:
            tally.damaged.append(str(error))
    return tally.numbers() | {"faults": tally.faults(), "doubts": tally.doubts()}


class _Tally:
    """Accumulates the counts of one set of files."""

    def __init__(self, file_set: FileSet, vocabulary: Sequence[str] | None) -> None:
        self.file_set, self.vocabulary = file_set, vocabulary
        self.damaged = [str(error) for error in file_set.damaged]
        self.ids = np.zeros(0 if vocabulary is None else len(vocabulary), np.int64)
        """[V] number of occurrences of each vocabulary entry."""
        self.documents = self.sentences = self.tokens = self.single = self.empty = self.beyond = self.largest = 0
        self.lengths = np.zeros(len(_LENGTHS) + 1, np.int64)
        self.texts = BottomK(len(file_set.files))

    def add(self, block: TokenDocuments) -> None:
        self.documents += len(block)
        self.sentences += len(block.lengths)
        self.tokens += len(block.ids)
        self.single += int((block.counts == 1).sum())
        self.empty += int((block.sizes == 0).sum())
        self.lengths += np.bincount(np.searchsorted(_LENGTHS, block.lengths), minlength=len(self.lengths))
        self.largest = max(self.largest, int(block.ids.max(initial=0)))
        if self.vocabulary is not None:
            # Count larger ids separately: a single huge id would make `bincount` allocate a huge array.
            known = block.ids[block.ids < len(self.vocabulary)]
            self.beyond += len(block.ids) - len(known)
            self.ids += np.bincount(known, minlength=len(self.ids))
        # Empty documents are all equal and would count as repeated.
        contents = row_hashes(block.ids, ends(block.sizes))[block.sizes > 0]
        self.texts.add(contents, contents)

    def numbers(self) -> dict[str, Any]:
        up_to = [f"up to {length:,}" for length in _LENGTHS] + ["longer"]
        return {
            "folder": str(self.file_set.folder),
            "kind": self.file_set.kind,
            "holds": "documents",
            "files": len(self.file_set.files),
            "documents": self.documents,
            "empty": self.empty,
            "single": self.single,
            "sentences": self.sentences,
            "tokens": self.tokens,
            "lengths": dict(zip(up_to, self.lengths.tolist(), strict=True)),
            "largest_id": self.largest,
            "unknown_rate": self._count("[UNK]") / self.tokens if self.vocabulary and self.tokens else None,
        }

    def faults(self) -> list[str]:
        faults = [f"damaged: {message}" for message in self.damaged]
        faults += [f"{file.name} holds examples, the other files hold running text" for file in self.file_set.mixed]
        if self.vocabulary is not None and self.beyond:
            size = len(self.vocabulary)
            faults.append(
                f"{self.beyond:,} ids are outside the vocabulary of {size:,} entries (the largest is {self.largest:,})"
            )
        texts = self.texts.repeated()
        if texts.several > max(1, _SHARED * texts.sampled):
            faults.append(f"{texts.several / texts.sampled:.1%} of the documents occur in several files")
        return faults

    def doubts(self) -> list[str]:
        special = {entry: self._count(entry) for entry in ENTRIES}
        said = [f"{entry} occurs {count:,} times" for entry, count in special.items() if count]
        return [*said, *unknown_words(self._count("[UNK]"), self.tokens)]

    def _count(self, entry: str) -> int:
        if self.vocabulary is None or entry not in self.vocabulary:
            return 0
        return int(self.ids[self.vocabulary.index(entry)])
