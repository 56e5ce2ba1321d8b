"""Scores of a network on batches with fixed masks: losses and accuracies of both heads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import torch

from bertwright.model.batch import PackedBatch
from bertwright.model.bert import BertForPreTraining
from bertwright.model.losses import mlm_loss_sum, nsp_loss_sum


@dataclass(frozen=True)
class Scores:
    """Means over everything scored."""

    mlm_loss: float | None
    """Cross-entropy of the masked tokens, in nats; None without predictions."""
    mlm_accuracy: float | None
    """Share of masked tokens whose best guess is right; None without predictions."""
    nsp_loss: float | None
    """Cross-entropy of the next-sentence labels, in nats; None without that head or without pairs."""
    nsp_accuracy: float | None
    """Share of pairs labelled right; None without that head or without pairs."""
    predictions: int
    """Masked tokens scored (the sum of their weights)."""
    pairs: int
    """Sentence pairs scored (the sum of the sequences' weights), 0 without the next-sentence head."""

    def as_dict(self) -> dict[str, float | None]:
        """The same as plain JSON."""
        return asdict(self)


@torch.inference_mode()
def score(model: BertForPreTraining, batches: Iterable[PackedBatch]) -> Scores:
    """Score `model` without dropout; it is left in the mode it was in."""
    sums = torch.zeros(6, dtype=torch.float64)
    was_training = model.training
    model.eval()
    try:
        for batch in batches:
            sums += _sums(model, batch).cpu()
    finally:
        model.train(was_training)
    mlm, right, predictions, nsp, right_pairs, pairs = sums.tolist()
    return Scores(
        mlm_loss=_mean(mlm, predictions),
        mlm_accuracy=_mean(right, predictions),
        nsp_loss=_mean(nsp, pairs),
        nsp_accuracy=_mean(right_pairs, pairs),
        predictions=int(predictions),
        pairs=int(pairs),
    )


def _mean(total: float, count: float) -> float | None:
    return total / count if count else None


def _sums(model: BertForPreTraining, batch: PackedBatch) -> torch.Tensor:
    mlm_PV, nsp_B2 = model(batch)
    right = ((mlm_PV.argmax(-1) == batch.labels) * batch.weights).sum()
    sums = [mlm_loss_sum(mlm_PV, batch.labels, batch.weights), right, batch.weights.sum()]
    if nsp_B2 is None:
        sums += [torch.zeros_like(right)] * 3
    else:
        pairs = ((nsp_B2.argmax(-1) == batch.next_sentence_labels) * batch.sequence_weights).sum()
        sums += [nsp_loss_sum(nsp_B2, batch.next_sentence_labels, batch.sequence_weights), pairs]
        sums += [batch.sequence_weights.sum()]
    return torch.stack([s.double() for s in sums])
