"""One optimizer step: micro-batches forward and backward, one sum over ranks, clip, update.

The loss of a micro-batch is sum(mlm)/N_mlm + sum(nsp)/N_nsp with N counted over the *global* batch, and
gradients are summed over micro-batches and ranks: how the batch is cut changes only the order of summation.
(The originals average the means of micro-batches, which weighs tokens unequally: NVIDIA DeepLearningExamples
BERT, run_pretraining.py.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Optimizer

from bertwright.core import rng
from bertwright.model.batch import PackedBatch
from bertwright.model.bert import BertForPreTraining
from bertwright.model.losses import mlm_loss_sum, nsp_loss_sum
from bertwright.optim.clip import clip_global_norm
from bertwright.train.ranks import Ranks


@dataclass(frozen=True)
class StepResult:
    """What one step measured, over the global batch."""

    mlm_loss: float
    """Mean cross-entropy of the masked tokens, in nats."""
    nsp_loss: float
    """Mean cross-entropy of the next-sentence labels, in nats; 0 without that head."""
    grad_norm: float
    """Global gradient norm before clipping."""
    applied: bool
    """False when a gradient was not finite: the whole global step was dropped."""


def train_step(
    model: BertForPreTraining,
    optimizer: Optimizer,
    batches: Sequence[PackedBatch],
    totals: tuple[int, int],
    *,
    learning_rate: float,
    max_grad_norm: float,
    dropout_key: int,
    ranks: Ranks,
) -> StepResult:
    """Train on one global batch, of which `batches` is this rank's share and `totals` the global (N_mlm, N_nsp).

    `dropout_key` names the step: the generator is seeded from it and (micro-step, rank), so no generator state
    needs saving.
    """
    optimizer.zero_grad(set_to_none=True)
    losses = torch.zeros(2, dtype=torch.float64)
    for micro_step, batch in enumerate(batches):
        torch.manual_seed(rng.key(dropout_key, micro_step, ranks.rank))
        loss, parts = _loss(model, batch, totals)
        loss.backward()  # type: ignore[no-untyped-call]
        losses += parts.double().cpu()
    parameters = [p for p in model.parameters() if p.requires_grad]
    for parameter in parameters:  # a rank without sequences still takes part in the sum
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    ranks.sum_in_place([p.grad for p in parameters if p.grad is not None])
    ranks.sum_in_place([losses])
    norm = float(clip_global_norm(parameters, max_grad_norm))
    applied = norm < float("inf")  # False for NaN as well
    if applied:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate
        optimizer.step()
    return StepResult(float(losses[0]), float(losses[1]), norm, applied)


def _loss(model: BertForPreTraining, batch: PackedBatch, totals: tuple[int, int]) -> tuple[Tensor, Tensor]:
    mlm_PV, nsp_B2 = model(batch)
    mlm = mlm_loss_sum(mlm_PV, batch.labels, batch.weights) / totals[0]
    if nsp_B2 is None:
        return mlm, torch.stack([mlm.detach(), torch.zeros_like(mlm)])
    nsp = nsp_loss_sum(nsp_B2, batch.next_sentence_labels, batch.sequence_weights) / max(totals[1], 1)
    return mlm + nsp, torch.stack([mlm.detach(), nsp.detach()])
