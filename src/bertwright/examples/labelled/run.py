"""The stage `examples` for classification: tokenises labelled texts and stores their ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bertwright.core.artifact import Artifact
from bertwright.core.errors import DataError
from bertwright.core.stage_context import StageContext
from bertwright.examples.config import ExamplesConfig, ImportedData, PlanSet
from bertwright.examples.example_set import Ids
from bertwright.examples.information import TELLING
from bertwright.examples.labelled.data import Labelled
from bertwright.examples.labelled.files import TextFiles
from bertwright.examples.labelled.read import Text
from bertwright.examples.own_examples import Kind, build_own
from bertwright.examples.run_tasks import Inputs
from bertwright.examples.store import token_dtype
from bertwright.vocab.tokenizer import Tokenizer

_AT_ONCE = 4096
"""Number of examples tokenised together."""


def run(config: ExamplesConfig, sets: tuple[PlanSet, ...], inputs: Inputs, context: StageContext) -> Artifact:
    """Build the examples artifact in `context.out` from labelled texts; see `build_own`."""
    files = inputs.imported[0].files
    assert isinstance(files, TextFiles)
    return build_own(LabelledKind(files), config, sets, inputs, context)


class LabelledKind(Kind[TextFiles, Labelled]):
    """See `Kind`."""

    def columns(self, examples: Sequence[Text], tokenizer: Tokenizer) -> Labelled:
        """As `Kind.columns`."""
        dtype = token_dtype(len(tokenizer.vocabulary))
        tokens, counts = [np.zeros(0, dtype)], [np.zeros((0, 2), np.uint32)]
        for start in range(0, len(examples), _AT_ONCE):
            some = [part for text in examples[start : start + _AT_ONCE] for part in text[:2]]
            flat, lengths = tokenizer.encode_texts(some)
            tokens.append(flat.astype(dtype))
            counts.append(lengths.reshape(-1, 2).astype(np.uint32))
        of_texts, labels = np.concatenate(counts), np.array([text.label for text in examples], np.float32)
        return Labelled(np.concatenate(tokens), of_texts[:, 0], of_texts[:, 1], labels)

    def classes(self, columns: Labelled) -> Ids:
        """As `Kind.classes`, [labels]."""
        number = len(self.files.labels)
        return np.bincount(columns.labels.astype(np.int64), minlength=number) if number > 1 else np.zeros(0, np.int64)

    def baseline(self, train: Labelled, heldout: Labelled) -> dict[str, Any]:
        """As `Kind.baseline`; of numbers, the mean of the training labels."""
        if len(self.files.labels) > 1:
            return super().baseline(train, heldout)
        mean = train.labels.mean(dtype=np.float64)
        return {"constant_loss": float(np.square(heldout.labels - mean).mean())}

    def check(self, train: Labelled, heldout: Labelled, data: ImportedData) -> None:
        """As `Kind.check`: if all texts have the same label, a network learns only to repeat it."""
        first = train.labels[0]
        if len(train) < TELLING or (train.labels != first).any():
            return
        labels = self.files.labels
        label = f"the number {first:g}" if len(labels) == 1 else labels[int(first)]
        raise DataError(
            f"{data.key}.data: {data.path}: all {len(train):,} training texts have the label {label}, so there is "
            "nothing to learn. Give texts with other labels, too, or another column (train.objective.label)."
        )

    def warnings(self, heldout: Labelled) -> Iterator[str]:
        """As `Kind.warnings`."""
        if len(heldout) >= TELLING and (heldout.labels == heldout.labels[0]).all():
            yield "all held-out texts have the same label, so a constant answer gets the best score"
