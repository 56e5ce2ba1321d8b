"""What an objective is: it turns a batch into terms, each of which is a loss of its own name.

Names carry shapes: N predictions of C classes each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor, nn

from bertwright.model.batch import PackedBatch
from bertwright.objectives.cross_entropy import cross_entropy_sum

Counted = Literal["predictions", "pairs"]
"""What the loader counts in a step (`StepCounts`) and a loss may be the mean over."""


@dataclass(frozen=True)
class Term:
    """One kind of prediction in a batch, as sums: the mean is over the global batch, which no batch knows."""

    logits: Tensor
    """[N, C] a score for each class."""
    labels: Tensor
    """[N] int64, the right class."""
    weights: Tensor
    """[N] float32, what each prediction counts; 0 for padding."""

    @property
    def loss_sum(self) -> Tensor:
        """Σ weight · cross-entropy, in nats: a scalar, to be differentiated once."""
        return cross_entropy_sum(self.logits, self.labels, self.weights)

    @property
    def right_sum(self) -> Tensor:
        """Σ weight of the predictions whose best class is the right one: a scalar."""
        return ((self.logits.argmax(-1) == self.labels) * self.weights).sum()

    @property
    def weight_sum(self) -> Tensor:
        """Σ weight: a scalar."""
        return self.weights.sum()


class Objective(Protocol):
    """What a network is trained for. The loss of a step is the sum of the means of its terms."""

    @property
    def counted(self) -> Mapping[str, Counted]:
        """The terms by name, in the order in which they are added, and what each is the mean over.

        Checkpoints are judged by the first.
        """

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Term]:
        """The terms of a batch, by the same names, from one forward pass."""


def judged_by(objective: Objective) -> str:
    """The name of the held-out score that checkpoints are compared by; less is better."""
    return f"{next(iter(objective.counted))}_loss"
