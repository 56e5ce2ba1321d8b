"""The scores of choices on the held-out questions, with those of a constant answer, and the worst errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.batch import MicroBatch
from bertwright.examples.columns import FOLDER
from bertwright.examples.loader import Heldout
from bertwright.model.model import Model
from bertwright.tasks.choice.choice_scores import Scores, losses_of, scores_of, split_questions
from bertwright.tasks.choice.examples import ChoiceExamples
from bertwright.tasks.objective import outputs
from bertwright.tasks.pretraining.questions import readable
from bertwright.tasks.task import ERRORS, Evaluation, HeldOut, Scoring
from bertwright.vocab.tokenizer import Tokenizer, load_tokenizer

BEST = 5
"""Choices shown for each question."""


def evaluate(model: Model, heldout: HeldOut, settings: Scoring) -> Evaluation:
    """Score the choices of the held-out questions; see `Task.evaluate`."""
    examples = ChoiceExamples.open(heldout.verified(f"{FOLDER}/"), "heldout", heldout.length, heldout.vocab)
    batches = list(Heldout.evenly(examples, settings.max_sequences or None).batches(settings.batch))
    found, right = split_questions(list(outputs(model, batches, heldout.log)), batches)
    counts = heldout.examples.counts["heldout"]
    known = {name: counts[name] for name in ("majority", "majority_label", "chance", "repeated")}
    scores = {**scores_of(found, right), **known, "sequences": len(found)}
    scores["untrained"] = by_chance(scores)
    most = ERRORS if settings.samples else 0
    worst = list(_worst(found, right, batches, most, load_tokenizer(heldout.vocab)))
    return Evaluation(scores, worst[: settings.samples], _summary(scores), worst)


def _summary(scores: Mapping[str, Any]) -> str:
    accuracy = "undefined" if scores["accuracy"] is None else f"{scores['accuracy']:.4f}"
    baselines = f"constant answer {scores['majority']:.4f}, chance {scores['chance']:.4f}"
    return f"accuracy {accuracy} ({baselines}) on {scores['sequences']:,} held-out questions"


def by_chance(scores: Mapping[str, Any]) -> bool:
    """Whether chance explains how many answers are right: less than two standard errors more than it gives."""
    accuracy, chance = scores["accuracy"], scores["chance"]
    error = math.sqrt(chance * (1 - chance) / scores["sequences"])
    return accuracy is None or accuracy < chance + 2 * error


def _worst(
    found: Sequence[Scores],
    right: NDArray[np.int64],
    batches: Sequence[MicroBatch],
    most: int,
    tokenizer: Tokenizer,
) -> Iterator[dict[str, Any]]:
    """Yield the wrongly answered questions with the highest loss."""
    places = [
        (batch, int(first)) for batch in batches for first in np.flatnonzero(batch.sequence_labels[:, 0] == 1).tolist()
    ]
    losses = losses_of(found, right)
    wrong = np.flatnonzero([scores.max() > scores[label] for scores, label in zip(found, right, strict=True)])
    for question in wrong[np.argsort(-losses[wrong], kind="stable")][:most].tolist():
        (batch, first), scores = places[question], found[question]
        pairs = [_texts(batch, first + choice, tokenizer) for choice in range(len(scores))]
        shares = np.exp(scores - scores.max())
        ranked = np.argsort(-scores, kind="stable")[:BEST].tolist()
        yield {
            "source": "held-out",
            "text": pairs[right[question]][0],
            "gold": pairs[right[question]][1],
            "answer": pairs[ranked[0]][1],
            "loss": float(losses[question]),
            "top": [{"token": pairs[i][1], "probability": float(shares[i] / shares.sum())} for i in ranked],
        }


def _texts(batch: MicroBatch, sequence: int, tokenizer: Tokenizer) -> tuple[str, str]:
    """The text and the choice of a sequence."""
    begin, end = batch.cu_seqlens[sequence : sequence + 2].tolist()
    second = begin + int(np.argmax(batch.segment_ids[begin:end]))
    # Without [CLS] and both [SEP].
    first, last = (batch.token_ids[a:b] for a, b in ((begin + 1, second - 1), (second, end - 1)))
    return readable(tokenizer.decode(first)), readable(tokenizer.decode(last))
