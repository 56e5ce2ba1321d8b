"""One optimizer step: micro-batches forward and backward, one sum over ranks, clip, update.

The loss of a micro-batch is the sum over the objective's terms of Σ loss / N, with N counted over the *global* batch,
and gradients are summed over micro-batches and ranks: how the batch is cut changes only the order of summation.
(The originals average the means of micro-batches, which weighs tokens unequally: NVIDIA DeepLearningExamples
BERT, run_pretraining.py.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from bertwright.core import rng
from bertwright.model.batch import PackedBatch
from bertwright.objectives.objective import Objective
from bertwright.optim.norms import clip_global_norm
from bertwright.train.ranks import Ranks


@dataclass(frozen=True)
class StepResult:
    """What one step measured, over the global batch."""

    losses: Mapping[str, float]
    """The mean of each term of the objective, in nats, by its name."""
    grad_norm: float
    """Global gradient norm before clipping."""
    applied: bool
    """False when a gradient was not finite: the whole global step was dropped."""


@dataclass(frozen=True)
class Trained:
    """What is trained, for what, and among whom: the same in every step."""

    model: nn.Module
    objective: Objective
    optimizer: Optimizer
    max_grad_norm: float
    """Global norm to which gradients are clipped; 0 clips nothing."""
    ranks: Ranks


def train_step(
    trained: Trained,
    batches: Sequence[PackedBatch],
    totals: Mapping[str, int],
    *,
    learning_rate: float,
    dropout_key: int,
) -> StepResult:
    """Train on one global batch, of which `batches` is this rank's share; `totals` has the global N of each term.

    `dropout_key` names the step: the generator is seeded from it and (micro-step, rank), so no generator state
    needs saving.
    """
    trained.optimizer.zero_grad(set_to_none=True)
    parameters = [p for p in trained.model.parameters() if p.requires_grad]
    losses = torch.zeros(len(totals), dtype=torch.float64, device=parameters[0].device)
    for micro_step, batch in enumerate(batches):
        torch.manual_seed(rng.key(dropout_key, micro_step, trained.ranks.rank))
        means = _means(trained, batch, totals)
        means.sum().backward()  # type: ignore[no-untyped-call]
        losses += means.detach()
    for parameter in parameters:  # a rank without sequences still takes part in the sum
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    trained.ranks.sum_in_place([p.grad for p in parameters if p.grad is not None])
    trained.ranks.sum_in_place([losses])
    norm = float(clip_global_norm(parameters, trained.max_grad_norm))
    applied = norm < float("inf")  # False for NaN as well
    if applied:
        for group in trained.optimizer.param_groups:
            group["lr"] = learning_rate
        trained.optimizer.step()
    return StepResult(dict(zip(totals, losses.tolist(), strict=True)), norm, applied)


def _means(trained: Trained, batch: PackedBatch, totals: Mapping[str, int]) -> Tensor:
    """The share of a micro-batch in the mean of each term, in the order of `totals`."""
    terms = trained.objective.terms(trained.model, batch)
    return torch.stack([terms[name].loss_sum / max(total, 1) for name, total in totals.items()])
