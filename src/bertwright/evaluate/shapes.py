"""The types of the counts in the manifest of `evaluate`, and of `predictions.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Required

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Flag, Number, Score, Text
from bertwright.corpus.shapes import Overlap
from bertwright.train.shapes import Unfinished


class Counts(TypedDict, total=False):
    """The held-out scores with their baselines; losses in nats, accuracies and shares from 0 to 1."""

    mlm_loss: Score
    mlm_accuracy: Score
    nsp_loss: Score
    nsp_accuracy: Score
    nsp_majority: Score
    nsp_label_share: Score
    sop_loss: Score
    sop_accuracy: Score
    sop_majority: Score
    sop_label_share: Score
    untrained: Flag
    unfinished: Unfinished
    perplexity: Score
    bits_per_character: Score
    unigram_loss: Number
    most_common_token_accuracy: Score
    most_common_token: Text
    overlap: Overlap
    predictions: Count
    sequences: Count
    classification_loss: Score
    accuracy: Score
    f1: Score
    matthews: Score
    majority: Score
    majority_label: Text
    majority_f1: Score
    frequency_loss: Score
    answered: dict[Text, Count]
    repeated: Count
    regression_loss: Score
    constant_loss: Score
    lowest: Score
    highest: Score
    pearson: Score
    spearman: Score


class _Evaluate(TypedDict, total=False):
    length: Count
    mask_rate: Number
    samples: Count
    cloze: list[Text]


class Settings(TypedDict, total=False):
    """The settings of an evaluation that others read."""

    evaluate: _Evaluate


CLASSIFIER_SCORES = {
    "accuracy": "accuracy",
    "f1": "F1",
    "matthews": "Matthews' correlation",
    "pearson": "Pearson's correlation",
    "spearman": "Spearman's correlation",
}
"""The scores of a classifier, for classes and for numbers, by name; higher is better."""

BASELINES = {
    "accuracy": "majority",
    "f1": "majority_f1",
    "classification_loss": "frequency_loss",
    "regression_loss": "constant_loss",
}
"""The score of an answer that ignores the text, by the score of a classifier; correlations have the baseline 0."""


class _Guess(TypedDict):
    token: Text
    probability: Annotated[Number, Field(ge=0, le=1)]


class _Prediction(TypedDict, total=False):
    source: Text
    text: Required[Text]
    gold: Required[Text | None]
    top: Required[list[_Guess]]


PREDICTIONS = TypeAdapter(list[_Prediction])

UNTRAINED = 0.2
"""Minimum difference, in nats, between the unigram loss and the loss of a model that uses the context."""


def untrained(loss: float | None, unigram: float) -> bool:
    """Whether a held-out loss shows no use of the context; a loss of None (not a number) counts as untrained."""
    return loss is None or loss > unigram - UNTRAINED


def one_answer(scores: Mapping[str, Any]) -> bool:
    """Whether a classifier with these scores gives the same answer to every text; numbers count as the same if they
    differ by less than 5 % of the deviation of the labels."""
    if answered := scores.get("answered"):
        return len([label for label, count in answered.items() if count]) == 1
    numbers = [scores.get(name) for name in ("lowest", "highest", "constant_loss")]
    low, high, constant = (float("nan") if number is None else float(number) for number in numbers)
    return bool(high - low < 0.05 * math.sqrt(constant))


def by_chance(scores: Mapping[str, Any]) -> bool:
    """Whether chance explains the answers of a classifier with these scores: their correlation with the labels is less
    than two standard errors, or not defined. False if the correlation was not taken."""
    taken = [scores[name] for name in ("matthews", "pearson") if name in scores]
    return bool(taken) and (taken[0] is None or taken[0] < 2 / max(scores["sequences"], 1) ** 0.5)
