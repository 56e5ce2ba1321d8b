"""The stage `examples` for tagging: tokenises the words of sentences and stores their ids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertwright.core.artifact import Artifact
from bertwright.core.errors import DataError
from bertwright.core.stage_context import StageContext
from bertwright.examples.config import ExamplesConfig, ImportedData, PlanSet
from bertwright.examples.example_set import Ids
from bertwright.examples.information import TELLING
from bertwright.examples.own_examples import Kind, build_own
from bertwright.examples.run_tasks import Inputs
from bertwright.examples.store import token_dtype
from bertwright.tasks.tagging.config import TaggedFiles
from bertwright.tasks.tagging.examples import TaggedColumns
from bertwright.tasks.tagging.files import Sentence
from bertwright.vocab.entries import UNK
from bertwright.vocab.tokenizer import Tokenizer

_NAMED = 12
"""Tags that a message names."""


def run(config: ExamplesConfig, sets: tuple[PlanSet, ...], inputs: Inputs, context: StageContext) -> Artifact:
    """Build the examples artifact from files of tagged words; see `build_own`."""
    files = inputs.imported[0].files
    assert isinstance(files, TaggedFiles)
    return build_own(TaggedKind(files), config, sets, inputs, context)


class TaggedKind(Kind[TaggedFiles, TaggedColumns]):
    """See `Kind`."""

    def columns(self, examples: Sequence[Sentence], tokenizer: Tokenizer) -> TaggedColumns:
        """As `Kind.columns`. A word without pieces, such as a soft hyphen, is [UNK]."""
        tokens, pieces = tokenizer.encode_texts([word for each in examples for word in each.words])
        empty = np.flatnonzero(pieces == 0)
        tokens = np.insert(tokens, np.cumsum(pieces)[empty], tokenizer.ids(UNK))
        numbers = {tag: number for number, tag in enumerate(self.files.labels)}
        labels = [numbers.get(tag, -1) for each in examples for tag in each.tags]
        return TaggedColumns(
            tokens.astype(token_dtype(len(tokenizer.vocabulary))),
            np.array([len(each.words) for each in examples], np.uint32),
            np.maximum(pieces, 1).astype(np.uint16),
            np.array(labels, np.int16),
        )

    def check(self, train: TaggedColumns, heldout: TaggedColumns, data: ImportedData) -> None:
        """As `Kind.check`: where words have no learned tag, or all the same, such as with types by other names."""
        key, learned = f"{data.key}.data", ", ".join(self.files.labels[:_NAMED])
        if not self.classes(heldout).any():
            raise DataError(f"{key}: {data.path}: no held-out word has one of the tags {learned}. Give others.")
        counts = self.classes(train)
        if np.count_nonzero(counts) < 2 and not 0 < int(counts.sum()) < TELLING:
            tag = self.files.labels[int(counts.argmax())] if counts.any() else "none"
            raise DataError(
                f"{key}: {data.path}: of the tags {learned} the training words have only {tag}, so there is nothing to "
                "learn. Name the types or tags as the files do (train.objective.entities, tags), or another column "
                "(train.objective.tag)."
            )

    def classes(self, columns: TaggedColumns) -> Ids:
        """As `Kind.classes`, [labels]."""
        return np.bincount(columns.labels[columns.labels >= 0], minlength=len(self.files.labels))
