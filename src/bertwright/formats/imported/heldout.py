"""Held-out examples of a run without a corpus: examples made elsewhere become documents of the held-out store.

Their masks are undone, so that they are masked as all held-out text is, and a plan row for each puts it together
again: the segments A and B are two sentences of a document, and where [SEP] stands inside A a new document begins.
Which are taken is a function of their ids before masking: the same whatever the files and their order, and copies of
an example, also those with other masks, are on one side.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.files import write_atomic
from bertwright.examples.config import ExamplesConfig
from bertwright.examples.documents import is_heldout
from bertwright.examples.instances import Instances, ends
from bertwright.examples.plans import ROW, UNLABELLED
from bertwright.examples.rows import rows
from bertwright.examples.shard import write_split
from bertwright.examples.store import Documents, token_dtype
from bertwright.examples.vocabulary import Vocabulary
from bertwright.formats.bottom_k import Hashes, row_hashes


@dataclass(frozen=True)
class HoldOut:
    """What a task of a run without a corpus holds out."""

    share: float
    """Share of its examples or documents, by their hash; 1: all, of files that are not for training."""
    parts: Path
    """Where the parts of all tasks lie."""
    number: int
    """Of its held-out part, among those of all phases."""
    config: ExamplesConfig

    @property
    def rows(self) -> Path:
        """The file with the plan rows of examples (of documents, they are made when all parts are there)."""
        return self.parts / "heldout" / f"{self.number:05}.rows"


@dataclass
class HeldoutPart:
    """The held-out examples of one file, gathered block by block."""

    hold_out: HoldOut
    vocabulary: Vocabulary
    documents: list[Documents] = field(default_factory=list)
    plan: list[NDArray[np.void]] = field(default_factory=list)
    """[R] `ROW` of each block."""
    tokens: int = 0

    def take(self, block: Instances) -> tuple[Instances, Hashes]:
        """Take its held-out examples out of a block: what is left to train on, and the hashes [N] of these N."""
        # Of the ids before masking: a copy with other masks must lie on the same side.
        hashes = row_hashes(block.originals(), block.cu_seqlens)
        held = is_heldout(hashes, self.hold_out.share)
        if held.any():
            labelled = self.hold_out.config.pairs
            some = block.take(np.flatnonzero(held))
            documents, plan = as_documents(some, hashes[held], self.vocabulary, labelled, self.tokens)
            self.documents.append(documents)
            self.plan.append(plan)
            self.tokens += len(documents.tokens)
        return block.take(np.flatnonzero(~held)), hashes[~held]

    def write(self) -> tuple[dict[str, Any], list[Path]]:
        """Write the part; its counts, and the files."""
        hold_out, documents = self.hold_out, _joined(self.documents, self.vocabulary.size)
        counts, files = write_split(hold_out.parts, hold_out.number, "heldout", documents, (), hold_out.config)
        plan = np.concatenate([np.zeros(0, ROW), *self.plan])
        # The disk is not waited for: a part that a crash damaged differs from the hashes in its note.
        write_atomic(hold_out.rows, plan.tobytes(), sync=False)
        return {**counts, "examples": len(plan)}, [*files, hold_out.rows]


def as_documents(
    examples: Instances, hashes: Hashes, vocabulary: Vocabulary, labelled: bool, first: int = 0
) -> tuple[Documents, NDArray[np.void]]:
    """The text of N examples as documents, whose hashes are the `hashes` [N] of the examples, and a plan row for each.

    Token indices of the rows count from `first`, where these documents begin. Only with `labelled` do labels of pairs
    count. Examples without text have no row.
    """
    tokens, example = examples.originals(), np.repeat(np.arange(len(examples)), examples.lengths)
    text = ~np.isin(tokens, (vocabulary.cls, vocabulary.sep))
    second = examples.segment_ids[text].astype(np.int64)
    stretch = np.cumsum(~text)[text] * (second == 0)  # between two special tokens; B is a single one
    owner = example[text]
    begins_sentence = _changes(owner) | _changes(second) | _changes(stretch)
    # A [SEP] inside A is where the text went on in another document.
    begins_document = _changes(owner) | (begins_sentence & (second == 0))
    sentences, documents = np.flatnonzero(begins_sentence), np.flatnonzero(begins_document)
    documents_made = Documents(
        tokens[text].astype(token_dtype(vocabulary.size)),
        np.diff(sentences, append=len(owner)).astype(np.uint16),
        np.append(np.searchsorted(sentences, documents), len(sentences)).astype(np.uint64),
        hashes[owner[documents]],
    )
    in_a = np.bincount(owner[second == 0], minlength=len(examples))
    of_example = np.bincount(owner, minlength=len(examples))
    a = first + ends(of_example)[:-1]
    document_breaks = np.maximum(np.bincount(owner[documents], minlength=len(examples)) - 1, 0)
    labels = examples.next_sentence_labels
    # A plan without pairs scores none, whatever label the files have.
    label = np.where(labelled & (labels >= 0), labels, UNLABELLED)
    return documents_made, rows(a, a + in_a, a + in_a, a + of_example, label, document_breaks)[of_example > 0]


def _changes(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where a value differs from the one before it, and at the first."""
    changed: NDArray[np.bool_] = np.diff(values, prepend=values[:1] - 1) != 0
    return changed


def _joined(parts: list[Documents], vocabulary_size: int) -> Documents:
    first = ends([len(part.sentences) for part in parts]).astype(np.uint64)
    bounds = [part.documents[:-1] + start for part, start in zip(parts, first, strict=False)]
    return Documents(
        np.concatenate([np.zeros(0, token_dtype(vocabulary_size)), *(part.tokens for part in parts)]),
        np.concatenate([np.zeros(0, np.uint16), *(part.sentences for part in parts)]),
        np.concatenate([*bounds, first[-1:]]),
        np.concatenate([np.zeros(0, np.uint64), *(part.hashes for part in parts)]),
    )
