"""One optimizer step: forward and backward passes over micro-batches, all-reduce, clipping, update.

The loss of a micro-batch is the sum over the objective's terms of share · Σ loss / N, with N counted over the *global*
batch, and gradients are summed over micro-batches and ranks. How the batch is split therefore changes only the order of
summation. (The original programs average the means of micro-batches, which weights tokens unequally: NVIDIA
DeepLearningExamples BERT, run_pretraining.py.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, nn

from bertwright.core import rng
from bertwright.model.batch import PackedBatch
from bertwright.model.dropout import seed_dropout
from bertwright.tasks.objective import JointObjective
from bertwright.tasks.terms import Summed, total_loss
from bertwright.train.graph.recorded import Scales
from bertwright.train.joint import joint_gradients
from bertwright.train.setup.trainee import Trainee


class MicroBatchTooLargeError(torch.cuda.OutOfMemoryError):
    """Memory ran out in the forward and backward passes, before any weight was changed, so the step can be trained
    again."""


@dataclass(frozen=True)
class StepSettings:
    """Settings that differ from step to step."""

    learning_rate: float
    dropout_key: int
    """Key of the step: the generator is seeded from it and (micro-step, rank), so no generator state needs saving."""
    loss_scale: float = 1.0
    """Factor by which the loss is multiplied for the backward pass, and gradients are divided afterwards."""
    norm_limit: float = math.inf
    """Gradient norm above which the update is dropped."""
    loss_limit: float = math.inf
    """Loss above which the update is dropped."""
    accuracy: bool = False
    """Whether to count correct predictions, too: this costs a pass over the logits."""
    may_run_out: bool = False
    """Whether running out of memory is reported to all ranks, because the step will be retried in smaller
    micro-batches."""


@dataclass(frozen=True)
class StepResult:
    """Measurements of one step, over the global batch."""

    losses: Mapping[str, float | None]
    """The mean of each term of the objective, in nats, by name; None for a term without any prediction in this step."""
    grad_norm: float
    """Global gradient norm before clipping."""
    applied: bool
    """False if the norm or the loss was not finite, or above its limit: the entire global step was dropped."""
    accuracies: Mapping[str, float | None] = field(default_factory=dict)
    """The share of correct predictions of each term, by name, None as in `losses`; empty if they were not counted."""
    loss: float = 0.0
    """The sum of the means of the terms, each multiplied by its share."""

    @property
    def empty(self) -> bool:
        """Whether there was nothing to predict, so that neither the loss nor the gradient is that of a step."""
        return bool(self.losses) and all(loss is None for loss in self.losses.values())


def train_step(
    trainee: Trainee,
    batches: Iterable[PackedBatch],
    totals: Mapping[str, int],
    update: StepSettings,
) -> StepResult:
    """Train on one global batch, of which `batches` is this rank's share, processed one after another; `totals` has the
    global N of each term."""
    # None instead of zeros: zeros would cost a pass over memory, and another to add the first gradients to them. Except
    # for a recorded pass, which adds to the same tensors in every step.
    trainee.model.zero_grad(set_to_none=trainee.recorder is None)
    scales = Scales({name: max(total, 1) for name, total in totals.items()}, update.loss_scale)
    if isinstance(trainee.objective, JointObjective):
        sums = _joint_sums(trainee, trainee.objective, list(batches), scales, update)
    else:
        sums = _agreed(trainee, update, lambda: _sums(trainee, batches, scales, update))
    norm = trainee.engine.reduce(update.loss_scale)
    trainee.ranks.all_reduce([sums])
    # The only read of device results in a step: the host must know whether to update, because the schedule follows
    # updates.
    *read, loss, grad_norm = torch.cat([sums, norm[None]]).tolist()
    applied = _is_good(grad_norm, update.norm_limit) and _is_good(loss, update.loss_limit)
    if applied:
        trainee.engine.update(update.learning_rate)
    # The losses, followed by the shares of correct predictions if those were requested.
    losses, correct = (dict(zip(totals, part, strict=False)) for part in (read, read[len(totals) :]))
    means, accuracies = (
        {name: value if totals[name] else None for name, value in values.items()}
        for values in (losses, {name: right for name, right in correct.items() if not math.isnan(right)})
    )
    return StepResult(means, grad_norm, applied, accuracies, loss)


def _is_good(value: float, limit: float) -> bool:
    # Both comparisons are false for NaN as well.
    return value < math.inf and value <= limit


Made = TypeVar("Made")


def _agreed(trainee: Trainee, update: StepSettings, compute: Callable[[], Made]) -> Made:
    """Return what `compute` does; if memory may run out, raise `MicroBatchTooLargeError` on all ranks as soon as it
    does on one."""
    if not update.may_run_out:
        return compute()
    made, full = None, ""
    try:
        made = compute()
    except torch.cuda.OutOfMemoryError as error:
        full = str(error)
    # Before the next all-reduce, in which a rank without results would leave the others waiting.
    if trainee.ranks.any(made is None) or made is None:
        raise MicroBatchTooLargeError(full or "CUDA out of memory on another rank.")
    return made


def _sums(trainee: Trainee, batches: Iterable[PackedBatch], scales: Scales, update: StepSettings) -> Tensor:
    """Return this rank's contribution to each term's mean, to its share of correct predictions if they are counted, and
    to the loss: [terms + 1] or [2 terms + 1] float64 on the device. Computes the gradients of the loss."""
    network, device, recorder = trainee.network(), trainee.precision.device, trainee.recorder
    # A recorded pass is the same in every step, so it always counts them.
    accuracy = update.accuracy or recorder is not None
    run = partial(run_pass, trainee, network, accuracy=accuracy)
    # Summed on the device: reading them for each micro-batch would make the host wait every time.
    sums = torch.zeros(len(scales.divisors) * (1 + accuracy) + 1, dtype=torch.float64, device=device)
    for micro_step, (batch, last) in enumerate(_until_last(batches)):
        trainee.ranks.count_pass()
        seed = partial(_seed, trainee, update, micro_step)
        if recorder is not None and not micro_step:
            recorder.begin_step(run, seed, batch, scales)
        seed()
        replayed = recorder.replay(batch, scales) if recorder is not None else None
        if replayed is None:
            # If a rank may run out of memory, no all-reduce may begin before all ranks are known to have succeeded.
            replayed = run(batch, scales, last=last and not update.may_run_out)
        sums += replayed
    return sums


def _seed(trainee: Trainee, update: StepSettings, micro_step: int) -> None:
    """Seed dropout for a forward pass."""
    # Depends on the rank: with the same seed two ranks would drop the same elements of different sequences.
    seed_dropout(trainee.precision.device, rng.key(update.dropout_key, micro_step, trainee.ranks.rank))


def _joint_sums(
    trainee: Trainee, objective: JointObjective, batches: Sequence[PackedBatch], scales: Scales, update: StepSettings
) -> Tensor:
    """As `_sums`, [2 terms + 1], for a loss that compares all outputs of the step (Gao et al. 2021, GradCache).

    All outputs are computed first, then the gradient of the loss with respect to them; then each micro-batch again,
    with the same dropout, for its backward pass. So the gradients are exactly those of the whole batch in one pass, but
    memory is that of a micro-batch.
    """
    network, last = trainee.network(), len(batches) - 1

    def outputs(micro_step: int) -> Tensor:
        trainee.ranks.count_pass()
        _seed(trainee, update, micro_step)
        with trainee.precision.forward():
            return objective.outputs(network, batches[micro_step])

    def compute_all() -> list[Tensor]:
        # A compiler would draw dropout in another way without gradients.
        with torch.no_grad() if trainee.graph.kind == "eager" else nullcontext():
            computed = [outputs(micro_step).detach() for micro_step in range(last)]
        # What the last one keeps for its backward pass is not computed again.
        return [*computed, outputs(last)] if batches else []

    def run_backward() -> bool:
        for number, micro_step in enumerate([last, *range(last)] if batches else []):
            output = outputs(micro_step) if number else computed.pop()
            loss = (output * gradients[micro_step]).sum()
            trainee.engine.root(loss, number == last and not update.may_run_out).backward()
        return True

    computed = _agreed(trainee, update, compute_all)
    sums, gradients = joint_gradients(trainee, objective, computed, batches, scales)
    _agreed(trainee, update, run_backward)
    return sums


def run_pass(
    trainee: Trainee,
    network: nn.Module,
    batch: PackedBatch,
    scales: Scales,
    accuracy: bool = False,
    last: bool = False,
) -> Tensor:
    """Run the forward and the backward pass of a micro-batch, adding to the gradients; returns its contributions,
    [terms + 1] or [2 terms + 1], as `_sums` does. The host reads nothing, so that the pass can be recorded."""
    with trainee.precision.forward():
        terms = trainee.objective.terms(network, batch)
        losses = trainee.sum_losses(terms)
        means = {name: losses[name] / divisor for name, divisor in scales.divisors.items()}
        loss = total_loss(means, terms)
    measured = [mean.detach() for mean in means.values()]
    if accuracy:  # before the backward pass, which frees the logits
        measured += [_right(terms[name]).double() / divisor for name, divisor in scales.divisors.items()]
    del terms
    trainee.engine.root(loss * scales.loss, last).backward()
    return torch.stack([*measured, loss.detach()])


def _until_last(batches: Iterable[PackedBatch]) -> Iterator[tuple[PackedBatch, bool]]:
    """Yield each batch and whether it is the last one; the next batch is fetched first, so its transfer starts
    early."""
    following = iter(batches)
    batch = next(following, None)
    while batch is not None:
        after = next(following, None)
        yield batch, after is None
        batch = after


def _right(term: Summed) -> Tensor:
    """Return the number of correct predictions, a scalar; NaN if the term predicts nothing."""
    right = term.correct_sum
    return torch.full_like(term.weight_sum, math.nan) if right is None else right
