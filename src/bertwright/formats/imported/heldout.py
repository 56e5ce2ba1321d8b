"""Held-out examples of a run without a corpus: imported examples become documents of the held-out store.

Their masks are undone, so that they are masked like all held-out text, and one plan row per example reassembles it:
the segments A and B are two sentences of a document, and a [SEP] inside A starts a new document. The selection depends
only on the ids before masking, not on the files or their order, so all copies of an example, including copies with
other masks, are on the same side of the split.
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
from bertwright.examples.plans import ROW, UNLABELLED, rows
from bertwright.examples.shard import write_split
from bertwright.examples.store import Documents, token_dtype
from bertwright.examples.vocabulary import Vocabulary
from bertwright.formats.repetitions import Hashes, row_hashes


@dataclass(frozen=True)
class HoldOut:
    """What a task holds out in a run without a corpus."""

    share: float
    """Share of its examples or documents to hold out, selected by hash; 1 for files that are not for training."""
    parts: Path
    """Folder with the parts of all tasks."""
    number: int
    """Number of its held-out part among those of all phases."""
    config: ExamplesConfig

    @property
    def rows(self) -> Path:
        """The file with the plan rows of examples (those of documents are made once all parts exist)."""
        return self.parts / "heldout" / f"{self.number:05}.rows"


@dataclass
class HeldoutPart:
    """The held-out examples of one file, collected block by block."""

    hold_out: HoldOut
    vocabulary: Vocabulary
    documents: list[Documents] = field(default_factory=list)
    plan: list[NDArray[np.void]] = field(default_factory=list)
    """Plan rows of each block, [R] `ROW`."""
    tokens: int = 0

    def take(self, block: Instances) -> tuple[Instances, Hashes]:
        """Remove and keep the held-out examples of a block; returns the other N examples and their hashes [N]."""
        # Hash the ids before masking: a copy with other masks must be on the same side of the split.
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
        """Write the part; returns its counts and the files written."""
        hold_out, documents = self.hold_out, _joined(self.documents, self.vocabulary.size)
        counts, files = write_split(hold_out.parts, hold_out.number, "heldout", documents, (), hold_out.config)
        plan = np.concatenate([np.zeros(0, ROW), *self.plan])
        # No sync to disk: if a crash damages a part, it no longer matches the hashes in its note.
        write_atomic(hold_out.rows, plan.tobytes(), sync=False)
        return {**counts, "examples": len(plan)}, [*files, hold_out.rows]


def as_documents(
    examples: Instances, hashes: Hashes, vocabulary: Vocabulary, labelled: bool, first: int = 0
) -> tuple[Documents, NDArray[np.void]]:
    """Convert the text of N examples to documents, with the `hashes` [N] of the examples, and a plan row per example.

    Token indices in the rows count from `first`, where these documents begin. Labels of pairs are used only with
    `labelled`. Special ids inside the text are left out, because nothing can be predicted there. Examples without text
    get no row.
    """
    tokens, example = examples.originals(), np.repeat(np.arange(len(examples)), examples.lengths)
    text = ~np.isin(tokens, vocabulary.special)
    ends_part = np.isin(tokens, (vocabulary.cls, vocabulary.sep))
    second = examples.segment_ids[text].astype(np.int64)
    stretch = np.cumsum(ends_part)[text] * (second == 0)  # number of the run between two special tokens; B is one run
    owner = example[text]
    begins_sentence = _changes(owner) | _changes(second) | _changes(stretch)
    # A [SEP] inside A marks where the text continues in another document.
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
    # A plan without pairs scores no labels, even if the files have some.
    label = np.where(labelled & (labels >= 0), labels, UNLABELLED)
    return documents_made, rows(a, a + in_a, a + in_a, a + of_example, label, document_breaks)[of_example > 0]


def _changes(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the values that differ from the previous one; the first always counts as different."""
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
