"""One optimizer step: micro-batches forward and backward, one sum over ranks, clip, update.

The loss of a micro-batch is the sum over the objective's terms of Σ loss / N, with N counted over the *global* batch,
and gradients are summed over micro-batches and ranks: how the batch is cut changes only the order of summation.
(The originals average the means of micro-batches, which weighs tokens unequally: NVIDIA DeepLearningExamples
BERT, run_pretraining.py.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from bertwright.core import rng
from bertwright.examples.batch import MicroBatch
from bertwright.model.batch import PackedBatch, packed
from bertwright.objectives.objective import Objective
from bertwright.train.engine.engine import Engine
from bertwright.train.precision.precision import Precision
from bertwright.train.ranks import Ranks


@dataclass(frozen=True)
class Trained:
    """What is trained, for what, and among whom: the same in every step."""

    model: nn.Module
    objective: Objective
    optimizer: Optimizer
    engine: Engine
    ranks: Ranks
    precision: Precision
    """In which numbers, and on which device."""
    moments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What the optimizer keeps of each parameter, by name (`optim.build.moment_names`)."""

    def read(self, batch: MicroBatch) -> PackedBatch:
        """The batch as the network reads it."""
        return packed(self.precision.fit(batch), self.precision.device)


@dataclass(frozen=True)
class StepSettings:
    """What differs from step to step."""

    learning_rate: float
    dropout_key: int
    """Names the step: the generator is seeded from it and (micro-step, rank), so no generator state needs saving."""
    loss_scale: float = 1.0
    """The loss is multiplied by it on the way back, and gradients are divided by it."""
    norm_limit: float = math.inf
    """Above this gradient norm the update is dropped."""
    accuracy: bool = False
    """Whether to count what was guessed right, too: it costs a pass over the logits."""


@dataclass(frozen=True)
class StepResult:
    """What one step measured, over the global batch."""

    losses: Mapping[str, float]
    """The mean of each term of the objective, in nats, by its name."""
    grad_norm: float
    """Global gradient norm before clipping."""
    applied: bool
    """False when the norm was not finite, or above the limit: the whole global step was dropped."""
    accuracies: Mapping[str, float] = field(default_factory=dict)
    """The share of each term's predictions that were guessed right, by its name; empty where they were not counted."""


def train_step(
    trained: Trained,
    batches: Sequence[PackedBatch],
    totals: Mapping[str, int],
    update: StepSettings,
) -> StepResult:
    """Train on one global batch, of which `batches` is this rank's share; `totals` has the global N of each term."""
    # None and not zeros: those would cost a pass over memory, and another to add the first gradients to them.
    trained.optimizer.zero_grad(set_to_none=True)
    # Added up on the device: reading them each micro-batch would make the host wait for it every time.
    sums = torch.zeros(1 + update.accuracy, len(totals), dtype=torch.float64, device=trained.precision.device)
    for micro_step, batch in enumerate(batches):
        # Also by rank: with the same seed two ranks would drop the same elements of different sequences.
        torch.manual_seed(rng.key(update.dropout_key, micro_step, trained.ranks.rank))
        with trained.precision.forward():
            terms = trained.objective.terms(trained.model, batch)
            means = _means({name: terms[name].loss_sum for name in totals}, totals)
        if update.accuracy:  # before the backward pass, which takes the logits' memory
            sums[1] += _means({name: terms[name].right_sum.double() for name in totals}, totals)
        del terms
        trained.engine.backward(means.sum() * update.loss_scale)
        sums[0] += means.detach()
    done = trained.engine.update(update.learning_rate, update.loss_scale, update.norm_limit)
    trained.ranks.all_reduce([sums])
    losses, *rights = [dict(zip(totals, of_terms, strict=True)) for of_terms in sums.tolist()]
    return StepResult(losses, done.grad_norm, done.applied, *rights)


def _means(sums: Mapping[str, Tensor], totals: Mapping[str, int]) -> Tensor:
    """What the sums of a micro-batch add to the mean of each term: [terms], in the order of `totals`."""
    # A global batch without any pair has N = 0, and its sum is 0 too.
    return torch.stack([sums[name] / max(total, 1) for name, total in totals.items()])
