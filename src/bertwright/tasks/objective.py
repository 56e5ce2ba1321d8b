"""The interface of objectives, and the scores of a network by one: the loss and the accuracy of every term."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertwright.core.log import Log
from bertwright.examples.batch import MicroBatch
from bertwright.model.batch import PackedBatch, packed
from bertwright.tasks.terms import Counted, Summed

if TYPE_CHECKING:
    from bertwright.examples.loader import Heldout


class Objective(Protocol):
    """A training objective. The loss of a step is the sum of the means of its terms, each times its share."""

    @property
    def counted(self) -> Mapping[str, Counted]:
        """The terms by name, in the order in which they are added, and what each is averaged over.

        Checkpoints are compared by the first one.
        """

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Summed]:
        """The terms of a batch by name, as in `counted`, from one forward pass."""


@runtime_checkable
class JointObjective(Objective, Protocol):
    """An objective whose loss compares all sequences of a step with each other, whichever micro-batch and rank they are
    in."""

    def outputs(self, model: nn.Module, batch: PackedBatch) -> Tensor:
        """What the network returns for each sequence of a batch and is compared, [B, D], in float32 or wider."""

    def compare(self, outputs_BD: Tensor, labels_BK: Tensor, weights_B: Tensor) -> Mapping[str, Summed]:
        """The terms by name, as in `counted`, of all sequences of a step, whose labels and weights are those of their
        batches."""


Scores = dict[str, float | None]
Rows = Literal["sequences", "predictions", "tokens"]
"""What each row of a network's logits belongs to."""


@runtime_checkable
class ScoredObjective(Objective, Protocol):
    """The objective of a task whose held-out answers are scored in training as the finished model's are."""

    @property
    def rows(self) -> Rows:
        """What the rows of the network's logits belong to, [B, C], [P, C] or [T, C]."""

    def score(self, logits: Sequence[NDArray[np.float64]], batches: Sequence[MicroBatch], heldout: Heldout) -> Scores:
        """The scores of the logits, [rows, C] each, of the batches that the held-out examples consist of, by the names
        that `evaluate` gives them; None where a score is undefined. The same for any number of ranks."""


class Recorded(nn.Module):
    """A network that keeps the logits that it returns, [rows, C], in float64 on the CPU, without those of padding."""

    def __init__(self, network: nn.Module, rows: Rows) -> None:
        super().__init__()
        self.network, self.rows, self.logits = network, rows, list[Tensor]()
        self.training = network.training

    def forward(self, batch: PackedBatch) -> Tensor:
        """The network's output for a batch: logits [B, C], [P, C] or [T, C]."""
        output: Tensor = self.network(batch)
        weights = batch.weights if self.rows == "predictions" else batch.sequence_weights
        if self.rows == "tokens":
            weights = weights.repeat_interleave(batch.cu_seqlens.diff())
            # Behind the last sequence of a batch of fixed shape there may be tokens of none.
            weights = nn.functional.pad(weights, (0, len(output) - len(weights)))
        self.logits.append(output[weights > 0].double().cpu())
        return output


def rows_of(batch: MicroBatch, rows: Rows) -> int:
    """The number of rows of the logits of a batch without padding."""
    counts = batch.counts
    return {"sequences": counts.sequences, "predictions": counts.predictions, "tokens": counts.tokens}[rows]


def judged_by(objective: Objective) -> str:
    """The name of the held-out score that checkpoints are compared by; lower is better."""
    return f"{next(iter(objective.counted))}_loss"


def score(objective: Objective, model: nn.Module, batches: Iterable[PackedBatch]) -> Scores:
    """The scores over all batches; see `scores_of`."""
    return scores_of(objective, score_sums(objective, model, batches))


# Not inference mode: an engine that shards weights allocates memory in its first forward pass that backward passes use.
@torch.no_grad()
def score_sums(objective: Objective, model: nn.Module, batches: Iterable[PackedBatch]) -> list[Tensor]:
    """For each batch [terms, 3]: sums of the losses, of the weights of correct predictions, and of all weights.

    The tensors are float64, on the CPU. The model is scored without dropout, and its mode is restored afterwards.
    """
    # Scoring also happens during training, which must continue with dropout.
    was_training, sums = model.training, list[Tensor]()
    model.eval()
    try:
        for batch in batches:
            terms = objective.terms(model, batch)
            sums.append(torch.stack([_sums(terms[name]) for name in objective.counted]).cpu())
    finally:
        model.train(was_training)
    return sums


def scores_of(objective: Objective, sums: Iterable[Tensor]) -> Scores:
    """`TERM_loss` (nats) and `TERM_accuracy` over all batches, and the counts they are averaged over, by kind.

    Terms without a notion of accuracy have none. A mean over nothing is None. The sums of the batches, [terms, 3] each,
    are added in order.
    """
    names = objective.counted
    # Added in batch order, whichever rank scored them, so that scores do not depend on the number of ranks.
    total = sum(sums, torch.zeros(len(names), 3, dtype=torch.float64)).tolist()
    scores: Scores = {}
    for name, (loss, right, weight) in zip(names, total, strict=True):
        scores[f"{name}_loss"] = _mean(loss, weight)
        if not math.isnan(right):
            scores[f"{name}_accuracy"] = _mean(right, weight)
    return scores | {names[name]: int(weight) for name, (_, _, weight) in zip(names, total, strict=True)}


def _sums(term: Summed) -> Tensor:
    """The sums of one term, [3], float64; the number of correct predictions is NaN for a term without accuracy."""
    loss = term.loss_sum.double()
    right = torch.full_like(loss, math.nan) if term.correct_sum is None else term.correct_sum.double()
    return torch.stack([loss, right, term.weight_sum.double()])


def _mean(total: float, count: float) -> float | None:
    return total / count if count else None


@torch.inference_mode()
def outputs(model: nn.Module, batches: Sequence[MicroBatch], log: Log) -> Iterator[NDArray[np.float64]]:
    """Yield the logits of a classifier for each batch, [B, C], [P, C] or [T, C] as its head gives them, in float64; the
    model's training mode is restored."""
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    try:
        for number, batch in enumerate(batches, start=1):
            yield model(packed(batch, device)).double().cpu().numpy()
            log.progress("evaluate", number, len(batches), "batches")
    finally:
        model.train(was_training)
