"""The stage `examples` for classification: tokenises labelled texts and stores their ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact
from bertwright.core.errors import DataError
from bertwright.core.stage_context import StageContext
from bertwright.examples.config import ExamplesConfig, ImportedData, PlanSet
from bertwright.examples.example_set import Ids
from bertwright.examples.information import TELLING
from bertwright.examples.labelled.data import NO_LABELS, Labelled, commonest_labels
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
        of_texts = np.concatenate(counts)
        return Labelled(np.concatenate(tokens), of_texts[:, 0], of_texts[:, 1], self._labels(examples))

    def _labels(self, examples: Sequence[Text]) -> NDArray[np.float32]:
        """As `Labelled.labels`."""
        if not self.files.described.several:
            return np.array([text.label for text in examples], np.float32)
        labels = np.zeros((len(examples), len(self.files.labels)), np.float32)
        for row, text in zip(labels, examples, strict=True):
            assert isinstance(text.label, tuple)
            row[list(text.label)] = 1
        return labels.reshape(-1)

    def classes(self, columns: Labelled) -> Ids:
        """As `Kind.classes`, [labels]."""
        number = len(self.files.labels)
        if self.files.described.several:
            counts: Ids = columns.label_rows.sum(0, dtype=np.int64)
            return counts
        return np.bincount(columns.labels.astype(np.int64), minlength=number) if number > 1 else np.zeros(0, np.int64)

    def total(self, columns: Labelled, classes: Sequence[int]) -> int:
        """As `Kind.total`: texts, of which each may have several labels."""
        return len(columns)

    def baseline(self, train: Labelled, heldout: Labelled) -> dict[str, Any]:
        """As `Kind.baseline`; of numbers, the mean of the training labels."""
        if self.files.described.several:
            commonest, share = commonest_labels(train, heldout)
            names = [name for name, has in zip(self.files.labels, commonest, strict=True) if has]
            return {"majority": share, "majority_label": ", ".join(names) or NO_LABELS}
        if len(self.files.labels) > 1:
            return super().baseline(train, heldout)
        mean = train.labels.mean(dtype=np.float64)
        return {"constant_loss": float(np.square(heldout.labels - mean).mean())}

    def check(self, train: Labelled, heldout: Labelled, data: ImportedData) -> None:
        """As `Kind.check`: if all texts have the same label, a network learns only to repeat it."""
        if len(train) < TELLING or not _all_alike(train):
            return
        labels, first = self.files.labels, train.labels[0]
        if self.files.described.several:
            label = ", ".join(name for name, has in zip(labels, train.label_rows[0], strict=True) if has) or NO_LABELS
        else:
            label = f"the number {first:g}" if len(labels) == 1 else labels[int(first)]
        raise DataError(
            f"{data.key}.data: {data.path}: all {len(train):,} training texts have the label {label}, so there is "
            "nothing to learn. Give texts with other labels, too, or another column (train.objective.label)."
        )

    def warnings(self, heldout: Labelled) -> Iterator[str]:
        """As `Kind.warnings`."""
        if len(heldout) >= TELLING and _all_alike(heldout):
            yield "all held-out texts have the same label, so a constant answer gets the best score"


def _all_alike(columns: Labelled) -> bool:
    """Whether all texts have the same label, or the same labels."""
    rows = columns.label_rows
    return bool((rows == rows[0]).all())
