"""Sequence classification: cross-entropy over the classes, or squared error for regression (Devlin et al. 2019 §4.1;
transformers' `*ForSequenceClassification`).

Names carry shapes: B sequences, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bertwright.model.batch import PackedBatch
from bertwright.tasks.terms import Counted, Summed, Term


@dataclass(frozen=True)
class Classification:
    """One term over all labelled sequences: `classification` or, if labels are numbers, `regression`."""

    classes: int
    """Number of classes; 1: regression."""

    @property
    def counted(self) -> Mapping[str, Counted]:
        """As `Objective.counted`."""
        return {"regression" if self.classes == 1 else "classification": "sequences"}

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Summed]:
        """As `Objective.terms`; the model returns logits [B, C]."""
        logits_BC, labels_B, weights_B = model(batch), batch.sequence_labels, batch.sequence_weights
        if self.classes == 1:
            return {"regression": SquaredErrorTerm(logits_BC[:, 0], labels_B, weights_B)}
        return {"classification": Term(logits_BC, labels_B, weights_B)}


@dataclass(frozen=True)
class SquaredErrorTerm:
    """(number - label)², in the square of the label's unit, not in nats; see `Summed`."""

    numbers: Tensor
    """[B] predictions."""
    labels: Tensor
    """[B] float, targets."""
    weights: Tensor
    """[B] float32, weight of each sequence: 1, or 0 for padding."""
    share: float = 1.0
    """Weight of the mean in the loss."""

    @property
    def loss_sum(self) -> Tensor:
        """Σ weight · squared error, in float32 or wider: a scalar."""
        numbers_B = self.numbers.to(torch.promote_types(self.numbers.dtype, torch.float32))
        return ((numbers_B - self.labels).square() * self.weights).sum()

    @property
    def correct_sum(self) -> Tensor | None:
        """None, never a scalar: regression has no correct predictions to count."""
        return None

    @property
    def weight_sum(self) -> Tensor:
        """Σ weight: a scalar."""
        return self.weights.sum()
