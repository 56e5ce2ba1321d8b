"""The stage `examples` for pairs of texts: tokenises them, and numbers equal texts and groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bertwright.core.artifact import Artifact
from bertwright.core.errors import DataError
from bertwright.core.stage_context import StageContext
from bertwright.examples.config import ExamplesConfig, ImportedData, PlanSet
from bertwright.examples.example_set import Ids
from bertwright.examples.own_examples import Kind, build_own
from bertwright.examples.run_tasks import Inputs
from bertwright.examples.store import token_dtype
from bertwright.tasks.embedding.config import PairFiles
from bertwright.tasks.embedding.embedding_scores import candidates
from bertwright.tasks.embedding.examples import PairColumns
from bertwright.tasks.embedding.files import Pair
from bertwright.vocab.tokenizer import Tokenizer


def run(config: ExamplesConfig, sets: tuple[PlanSet, ...], inputs: Inputs, context: StageContext) -> Artifact:
    """Build the examples artifact from files of pairs; see `build_own`."""
    files = inputs.imported[0].files
    assert isinstance(files, PairFiles)
    return build_own(PairKind(files), config, sets, inputs, context)


class PairKind(Kind[PairFiles, PairColumns]):
    """See `Kind`."""

    def columns(self, examples: Sequence[Pair], tokenizer: Tokenizer) -> PairColumns:
        """As `Kind.columns`."""
        read = [self.files.read_texts(pair) for pair in examples]
        tokens, pieces = tokenizer.encode_texts([text for texts in read for text in texts])
        # By what the texts are, not by what is read: with prompts an anchor would differ from an equal positive.
        texts = dict[str, int]()
        numbers = [texts.setdefault(text, len(texts)) for pair in examples for text in pair.texts]
        groups = dict[str, int]()
        # A pair without a group has one of its own, which no text can name.
        names = [pair.group or f"\0{number}" for number, pair in enumerate(examples)]
        return PairColumns(
            tokens.astype(token_dtype(len(tokenizer.vocabulary))),
            np.array([len(each) for each in read], np.uint16),
            pieces.astype(np.uint32),
            np.array(numbers, np.uint32),
            np.array([groups.setdefault(name, len(groups)) for name in names], np.uint32),
        )

    def lengths(self, columns: PairColumns, length: int) -> Ids:
        """As `Kind.lengths`, [N]: of all sequences of a pair together."""
        return columns.of_pairs(columns.cut(length) + self.files.specials)

    def classes(self, columns: PairColumns) -> Ids:
        """As `Kind.classes`, [labels]; empty, because nothing is classified."""
        return np.zeros(0, np.int64)

    def baseline(self, train: PairColumns, heldout: PairColumns) -> dict[str, Any]:
        """As `Kind.baseline`: the share of held-out positives that a guess finds first."""
        anchors = heldout.first_texts[:-1]
        numbers = candidates(heldout.texts[anchors], heldout.texts[anchors + 1], heldout.groups)
        return {"chance": float((1 / numbers).mean()) if len(numbers) else 0.0}

    def check(self, train: PairColumns, heldout: PairColumns, data: ImportedData) -> None:
        """As `Kind.check`: without two groups or a negative, nothing is compared."""
        if len(np.unique(train.groups)) < 2 and not (train.counts > 2).any():
            raise DataError(
                f"{data.key}.data: all pairs of {data.path} are of one group and have no negatives, so that no text is "
                "to get another vector than its anchor. Give pairs of several groups, or negatives."
            )

    def warnings(self, heldout: PairColumns) -> Iterator[str]:
        """As `Kind.warnings`."""
        if (found := len(np.unique(heldout.texts[heldout.first_texts[:-1] + 1]))) < 100:
            yield f"of only {found} held-out positives, the right one is easily found; the scores will look good"
