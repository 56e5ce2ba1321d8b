"""Scores of a network on batches with fixed masks: the loss and the accuracy of every term."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from bertwright.model.batch import PackedBatch
from bertwright.objectives.objective import Objective

Scores = dict[str, float | None]


@torch.inference_mode()
def score(objective: Objective, model: nn.Module, batches: Iterable[PackedBatch]) -> Scores:
    """`<term>_loss` (nats) and `<term>_accuracy` over everything scored, and how much that was, by what it counts.

    A mean over nothing is None. The model is scored without dropout and left in the mode it was in.
    """
    names = objective.counted
    sums = torch.zeros(len(names), 3, dtype=torch.float64)
    was_training = model.training
    model.eval()
    try:
        for batch in batches:
            terms = objective.terms(model, batch)
            found = [(terms[name].loss_sum, terms[name].right_sum, terms[name].weight_sum) for name in names]
            sums += torch.stack([torch.stack([value.double() for value in each]) for each in found]).cpu()
    finally:
        model.train(was_training)
    scores: Scores = {}
    for name, (loss, right, weight) in zip(names, sums.tolist(), strict=True):
        scores |= {f"{name}_loss": _mean(loss, weight), f"{name}_accuracy": _mean(right, weight)}
    return scores | {names[name]: int(weight) for name, weight in zip(names, sums[:, 2].tolist(), strict=True)}


def _mean(total: float, count: float) -> float | None:
    return total / count if count else None
