"""The scores of choices against the right ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.json_values import json_number
from bertwright.examples.batch import MicroBatch
from bertwright.tasks.classification.class_scores import cross_entropies, of_classes

Scores = NDArray[np.float64]


def split_questions(logits: Sequence[Scores], batches: Sequence[MicroBatch]) -> tuple[list[Scores], NDArray[np.int64]]:
    """The scores of the choices of each question [K], and the index of the right one of each [N], from the logits
    [B, 1] of whole batches."""
    found = [
        question
        for batch, scores_B1 in zip(batches, logits, strict=True)
        for question in np.split(scores_B1[:, 0], np.flatnonzero(batch.sequence_labels[:, 0] == 1)[1:])
    ]
    labels = np.concatenate([batch.sequence_labels for batch in batches])
    return found, labels[labels[:, 1] == 1, 0] - 1


def scores_of(found: Sequence[Scores], right: NDArray[np.int64]) -> dict[str, Any]:
    """The scores of the choices of each question [K], given the indices of the right ones [N]; undefined ones are None.

    `matthews` is Matthews' correlation of the places of answers, which HuLU publishes for HuCoPA. Of choices with equal
    scores the first is the answer.
    """
    if not all(np.isfinite(scores).all() for scores in found):
        return {"choice_loss": None, "accuracy": None, "matthews": None}
    losses = losses_of(found, right)
    most = max(len(scores) for scores in found)
    answers = np.array([scores.argmax() for scores in found])
    of_places = of_classes(answers, right, most)
    answered = {f"choice {i + 1}": count for i, count in enumerate(np.bincount(answers, minlength=most).tolist())}
    shares = {"accuracy": of_places["accuracy"], "matthews": of_places["matthews"]}
    return {"choice_loss": json_number(float(np.mean(losses))), **shares, "answered": answered}


def losses_of(found: Sequence[Scores], right: NDArray[np.int64]) -> Scores:
    """[N] the loss of each question, in nats."""
    losses = [cross_entropies(scores[None], label) for scores, label in zip(found, right[:, None], strict=True)]
    return np.concatenate(losses)
