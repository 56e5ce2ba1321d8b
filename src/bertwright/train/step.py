"""One optimizer step: micro-batches forward and backward, one sum over ranks, clip, update.

The loss of a micro-batch is the sum over the objective's terms of share · Σ loss / N, with N counted over the *global*
batch, and gradients are summed over micro-batches and ranks: how the batch is cut changes only the order of summation.
(The originals average the means of micro-batches, which weighs tokens unequally: NVIDIA DeepLearningExamples
BERT, run_pretraining.py.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from bertwright.core import rng
from bertwright.model.batch import PackedBatch
from bertwright.objectives.term import Summed
from bertwright.train.trained import Trained


class MicroBatchTooLargeError(torch.cuda.OutOfMemoryError):
    """Memory ran out in forward and backward passes: before any weight was moved, so the step can be trained again."""


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
    loss_limit: float = math.inf
    """Above this loss the update is dropped."""
    accuracy: bool = False
    """Whether to count what was guessed right, too: it costs a pass over the logits."""
    may_run_out: bool = False
    """Whether running out of memory is told to all ranks, because the step will be trained again in smaller parts."""


@dataclass(frozen=True)
class StepResult:
    """What one step measured, over the global batch."""

    losses: Mapping[str, float]
    """The mean of each term of the objective, in nats, by its name."""
    grad_norm: float
    """Global gradient norm before clipping."""
    applied: bool
    """False when the norm or the loss was not finite, or above its limit: the whole global step was dropped."""
    accuracies: Mapping[str, float] = field(default_factory=dict)
    """The share of each term's predictions that were guessed right, by its name; empty where they were not counted."""
    loss: float = 0.0
    """The means of the terms, each times what it counts, added up."""


def train_step(
    trained: Trained,
    batches: Iterable[PackedBatch],
    totals: Mapping[str, int],
    update: StepSettings,
) -> StepResult:
    """Train on one global batch, of which `batches` is this rank's share, taken one after another; `totals` has the
    global N of each term."""
    # None and not zeros: those would cost a pass over memory, and another to add the first gradients to them.
    trained.model.zero_grad(set_to_none=True)
    if trained.graph.kind == "compiled" and trained.precision.device.type == "cuda":
        # Except beside recorded graphs: what one gives is overwritten by its next replay, so it is added to memory of
        # our own and never kept.
        for parameter in trained.model.parameters():
            parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    sums = _agreed_sums(trained, batches, totals, update)
    norm = trained.engine.reduce(update.loss_scale)
    trained.ranks.all_reduce([sums])
    # The one reading of a step: the host has to know whether there is an update, as the schedule follows those.
    *read, loss, grad_norm = torch.cat([sums, norm[None]]).tolist()
    applied = _is_good(grad_norm, update.norm_limit) and _is_good(loss, update.loss_limit)
    if applied:
        trained.engine.update(update.learning_rate)
    # As many, and where they were asked for what was guessed right behind them.
    losses, rights = (dict(zip(totals, part, strict=False)) for part in (read, read[len(totals) :]))
    guessed = {name: right for name, right in rights.items() if not math.isnan(right)}
    return StepResult(losses, grad_norm, applied, guessed, loss)


def _is_good(value: float, limit: float) -> bool:
    # Both are false for NaN as well.
    return value < math.inf and value <= limit


def _agreed_sums(
    trained: Trained, batches: Iterable[PackedBatch], totals: Mapping[str, int], update: StepSettings
) -> Tensor:
    """As `_sums`; where memory may run out, `MicroBatchTooLargeError` on all ranks as soon as it does on one."""
    if not update.may_run_out:
        return _sums(trained, batches, totals, update)
    sums, full = None, ""
    try:
        sums = _sums(trained, batches, totals, update)
    except torch.cuda.OutOfMemoryError as error:
        full = str(error)
    # Before the first sum of gradients, which the rank that has none would leave the others waiting in.
    if trained.ranks.any(sums is None) or sums is None:
        raise MicroBatchTooLargeError(full or "another rank is out of memory")
    return sums


def _sums(trained: Trained, batches: Iterable[PackedBatch], totals: Mapping[str, int], update: StepSettings) -> Tensor:
    """The rank's part of each term's mean, where it is asked for of what was guessed right, and of the loss:
    [terms + 1] or [2 terms + 1] float64 on the device, with the gradients of the loss."""
    network = trained.network()
    # Added up on the device: reading them each micro-batch would make the host wait for it every time.
    sums = torch.zeros(len(totals) * (1 + update.accuracy) + 1, dtype=torch.float64, device=trained.precision.device)
    for micro_step, (batch, last) in enumerate(_until_last(batches)):
        # Also by rank: with the same seed two ranks would drop the same elements of different sequences.
        torch.manual_seed(rng.key(update.dropout_key, micro_step, trained.ranks.rank))
        with trained.precision.forward():
            terms = trained.objective.terms(network, batch)
            means = {name: terms[name].loss_sum / max(total, 1) for name, total in totals.items()}
            # A term that counts nothing is measured, and has no way back.
            loss = torch.stack([mean * terms[name].share for name, mean in means.items() if terms[name].share]).sum()
        measured = [mean.detach() for mean in means.values()]
        if update.accuracy:  # before the backward pass, which takes the logits' memory
            measured += [_right(terms[name]).double() / max(total, 1) for name, total in totals.items()]
        del terms
        # Where a rank may run out of memory no sum may begin before all are known to have come through.
        trained.engine.root(loss * update.loss_scale, last and not update.may_run_out).backward()
        sums += torch.stack([*measured, loss.detach()])
    return sums


def _until_last(batches: Iterable[PackedBatch]) -> Iterator[tuple[PackedBatch, bool]]:
    """Each batch, and whether it is the last one; the next is taken before, so that it is on its way to the device."""
    following = iter(batches)
    batch = next(following, None)
    while batch is not None:
        after = next(following, None)
        yield batch, after is None
        batch = after


def _right(term: Summed) -> Tensor:
    """What was guessed right, a scalar; NaN where nothing is guessed."""
    right = term.right_sum
    return torch.full_like(term.weight_sum, math.nan) if right is None else right
