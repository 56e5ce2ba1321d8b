"""Sequence classification: cross-entropy over the classes, binary cross-entropy of each label where a text may have
several, or squared error for regression (Devlin et al. 2019 §4.1; transformers' `*ForSequenceClassification`).

Names carry shapes: B sequences, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from bertwright.examples.batch import MicroBatch
from bertwright.examples.loader import Heldout
from bertwright.model.batch import PackedBatch
from bertwright.tasks.classification.class_scores import score_logits
from bertwright.tasks.objective import Rows, Scores
from bertwright.tasks.terms import Counted, Summed, Term


@dataclass(frozen=True)
class Classification:
    """One term over all labelled sequences: `classification`, `labels` if a sequence may have several of them, or
    `regression` if they are numbers."""

    classes: int
    """Number of classes; 1: regression."""
    several: bool = False
    """Whether a sequence has any number of the classes."""
    rows: ClassVar[Rows] = "sequences"

    @property
    def counted(self) -> Mapping[str, Counted]:
        """As `Objective.counted`."""
        return {"labels" if self.several else "regression" if self.classes == 1 else "classification": "sequences"}

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Summed]:
        """As `Objective.terms`; the model returns logits [B, C]."""
        logits_BC, labels_B, weights_B = model(batch), batch.sequence_labels, batch.sequence_weights
        if self.several:
            return {"labels": LabelsTerm(logits_BC, labels_B, weights_B)}
        if self.classes == 1:
            return {"regression": SquaredErrorTerm(logits_BC[:, 0], labels_B, weights_B)}
        return {"classification": Term(logits_BC, labels_B, weights_B)}

    def score(self, logits: Sequence[NDArray[np.float64]], batches: Sequence[MicroBatch], heldout: Heldout) -> Scores:
        """As `ScoredObjective.score`, of logits [B, C] each; see `class_scores`."""
        return score_logits(np.concatenate(logits), np.concatenate([batch.sequence_labels for batch in batches]))


@dataclass(frozen=True)
class LabelsTerm:
    """The binary cross-entropy of each label, its mean over the labels of a sequence; see `Summed`."""

    logits: Tensor
    """[B, C]"""
    labels: Tensor
    """[B, C] float32, 1 for the labels of each sequence, else 0."""
    weights: Tensor
    """[B] float32, weight of each sequence: 1, or 0 for padding."""
    share: float = 1.0
    """Weight of the mean in the loss."""

    @property
    def loss_sum(self) -> Tensor:
        """Σ weight · mean binary cross-entropy, in nats, in float32 or wider: a scalar."""
        logits_BC = self.logits.to(torch.promote_types(self.logits.dtype, torch.float32))
        labels_BC = self.labels.to(logits_BC.dtype)
        losses_BC = binary_cross_entropy_with_logits(logits_BC, labels_BC, reduction="none")
        return (losses_BC.mean(1) * self.weights).sum()

    @property
    def correct_sum(self) -> Tensor:
        """Σ weight of the sequences whose labels are all right, with probabilities above 0.5: a scalar."""
        right_B = ((self.logits > 0) == (self.labels > 0.5)).all(1)
        return (right_B * self.weights).sum()

    @property
    def weight_sum(self) -> Tensor:
        """Σ weight: a scalar."""
        return self.weights.sum()


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
