"""The scores of choices on the held-out questions, with those of a constant answer, and the worst errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.json_values import json_number
from bertwright.examples.batch import MicroBatch
from bertwright.examples.columns import FOLDER
from bertwright.examples.loader import Heldout
from bertwright.model.model import Model
from bertwright.tasks.choice.examples import ChoiceExamples
from bertwright.tasks.classification.scores import of_classes
from bertwright.tasks.objective import outputs
from bertwright.tasks.pretraining.scores import readable
from bertwright.tasks.task import Evaluation, HeldOut, Scoring
from bertwright.vocab.tokenizer import Tokenizer, load_tokenizer

BEST = 5
"""Choices shown for each question."""
Scores = NDArray[np.float64]


def evaluate(model: Model, heldout: HeldOut, settings: Scoring) -> Evaluation:
    """Score the choices of the held-out questions; see `Task.evaluate`."""
    examples = ChoiceExamples.open(heldout.verified(f"{FOLDER}/"), "heldout", heldout.length, heldout.vocab)
    batches = list(Heldout.evenly(examples, settings.max_sequences or None).batches(settings.batch))
    found = [
        question
        for batch, scores_B1 in zip(batches, outputs(model, batches, heldout.log), strict=True)
        for question in np.split(scores_B1[:, 0], np.flatnonzero(batch.sequence_labels[:, 0] == 1)[1:])
    ]
    labels = np.concatenate([batch.sequence_labels for batch in batches])
    right = labels[labels[:, 1] == 1, 0] - 1
    counts = heldout.examples.counts["heldout"]
    known = {name: counts[name] for name in ("majority", "majority_label", "chance", "repeated")}
    scores = {**scores_of(found, right), **known, "sequences": len(found)}
    scores["untrained"] = by_chance(scores)
    worst = list(_worst(found, right, batches, settings.samples, load_tokenizer(heldout.vocab)))
    return Evaluation(scores, worst, _summary(scores))


def _summary(scores: Mapping[str, Any]) -> str:
    accuracy = "undefined" if scores["accuracy"] is None else f"{scores['accuracy']:.4f}"
    baselines = f"constant answer {scores['majority']:.4f}, chance {scores['chance']:.4f}"
    return f"accuracy {accuracy} ({baselines}) on {scores['sequences']:,} held-out questions"


def scores_of(found: Sequence[Scores], right: NDArray[np.int64]) -> dict[str, Any]:
    """The scores of the choices of each question [K], given the indices of the right ones [N]; undefined ones are None.

    `matthews` is Matthews' correlation of the places of answers, which HuLU publishes for HuCoPA. Of choices with equal
    scores the first is the answer.
    """
    losses = [_log_sum(scores) - scores[label] for scores, label in zip(found, right, strict=True)]
    most = max(len(scores) for scores in found)
    answers = np.array([scores.argmax() for scores in found])
    if not all(np.isfinite(scores).all() for scores in found):
        return {"choice_loss": None, "accuracy": None, "matthews": None}
    of_places = of_classes(answers, right, most)
    answered = {f"choice {i + 1}": count for i, count in enumerate(np.bincount(answers, minlength=most).tolist())}
    shares = {"accuracy": of_places["accuracy"], "matthews": of_places["matthews"]}
    return {"choice_loss": json_number(float(np.mean(losses))), **shares, "answered": answered}


def by_chance(scores: Mapping[str, Any]) -> bool:
    """Whether chance explains how many answers are right: less than two standard errors more than it gives."""
    accuracy, chance = scores["accuracy"], scores["chance"]
    error = math.sqrt(chance * (1 - chance) / scores["sequences"])
    return accuracy is None or accuracy < chance + 2 * error


def _log_sum(scores: Scores) -> float:
    largest = scores.max()
    return float(np.log(np.exp(scores - largest).sum()) + largest)


def _worst(
    found: Sequence[Scores],
    right: NDArray[np.int64],
    batches: Sequence[MicroBatch],
    most: int,
    tokenizer: Tokenizer,
) -> Iterator[dict[str, Any]]:
    """Yield the wrongly answered questions of whose answer the model is surest."""
    places = [
        (batch, int(first)) for batch in batches for first in np.flatnonzero(batch.sequence_labels[:, 0] == 1).tolist()
    ]
    margins = np.array([scores.max() - scores[label] for scores, label in zip(found, right, strict=True)])
    wrong = np.flatnonzero(margins > 0)
    for question in wrong[np.argsort(-margins[wrong], kind="stable")][:most].tolist():
        (batch, first), scores = places[question], found[question]
        pairs = [_texts(batch, first + choice, tokenizer) for choice in range(len(scores))]
        shares = np.exp(scores - scores.max())
        ranked = np.argsort(-scores, kind="stable")[:BEST].tolist()
        yield {
            "source": "held-out",
            "text": pairs[right[question]][0],
            "gold": pairs[right[question]][1],
            "top": [{"token": pairs[i][1], "probability": float(shares[i] / shares.sum())} for i in ranked],
        }


def _texts(batch: MicroBatch, sequence: int, tokenizer: Tokenizer) -> tuple[str, str]:
    """The text and the choice of a sequence."""
    begin, end = batch.cu_seqlens[sequence : sequence + 2].tolist()
    second = begin + int(np.argmax(batch.segment_ids[begin:end]))
    # Without [CLS] and both [SEP].
    first, last = (batch.token_ids[a:b] for a, b in ((begin + 1, second - 1), (second, end - 1)))
    return readable(tokenizer.decode(first)), readable(tokenizer.decode(last))
