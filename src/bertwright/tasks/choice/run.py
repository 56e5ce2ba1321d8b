"""The stage `examples` for multiple choice: tokenises the texts of questions and their choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bertwright.core.artifact import Artifact
from bertwright.core.stage_context import StageContext
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.example_set import Ids
from bertwright.examples.own_examples import Kind, build_own
from bertwright.examples.run_tasks import Inputs
from bertwright.examples.store import token_dtype
from bertwright.tasks.choice.config import ChoiceFiles
from bertwright.tasks.choice.examples import ChoiceColumns
from bertwright.tasks.choice.files import Question
from bertwright.vocab.tokenizer import Tokenizer


def run(config: ExamplesConfig, sets: tuple[PlanSet, ...], inputs: Inputs, context: StageContext) -> Artifact:
    """Build the examples artifact from files of questions with choices; see `build_own`."""
    files = inputs.imported[0].files
    assert isinstance(files, ChoiceFiles)
    return build_own(ChoiceKind(files), config, sets, inputs, context)


class ChoiceKind(Kind[ChoiceFiles, ChoiceColumns]):
    """See `Kind`."""

    def columns(self, examples: Sequence[Question], tokenizer: Tokenizer) -> ChoiceColumns:
        """As `Kind.columns`."""
        tokens, pieces = tokenizer.encode_texts([text for each in examples for text in (each.context, *each.endings)])
        choices = np.array([len(each.choices) for each in examples], np.uint16)
        contexts = np.cumsum(choices + np.int64(1)) - choices - 1
        return ChoiceColumns(
            tokens.astype(token_dtype(len(tokenizer.vocabulary))),
            pieces[contexts].astype(np.uint32),
            choices,
            np.delete(pieces, contexts).astype(np.uint32),
            np.array([each.label for each in examples], np.uint16),
        )

    def lengths(self, columns: ChoiceColumns, length: int) -> Ids:
        """As `Kind.lengths`, [N]: of all sequences of an example together."""
        contexts, endings = columns.cut(length)
        return columns.of_examples(contexts + endings + self.files.specials)

    def classes(self, columns: ChoiceColumns) -> Ids:
        """As `Kind.classes`, [labels]; empty, because choices are no classes."""
        return np.zeros(0, np.int64)

    def baseline(self, train: ChoiceColumns, heldout: ChoiceColumns) -> dict[str, Any]:
        """As `Kind.baseline`: the most common place of the right choice; and the share that a guess gets right."""
        commonest = int(np.bincount(train.labels).argmax())
        return {
            "majority": float((heldout.labels == commonest).mean()),
            "majority_label": f"choice {commonest + 1}",
            "chance": float((1 / heldout.choices).mean()),
        }
