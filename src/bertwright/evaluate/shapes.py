"""The types of the counts in the manifest of `evaluate`, and of `predictions.json`."""

from __future__ import annotations

from typing import Annotated, Required

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Flag, Number, Score, Text
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
    unigram_loss: Score
    most_common_token_accuracy: Score
    most_common_token: Text
    predictions: Count
    sequences: Count
    classification_loss: Score
    accuracy: Score
    f1: Score
    matthews: Score
    majority: Score
    majority_label: Text
    regression_loss: Score
    constant_loss: Score
    pearson: Score
    spearman: Score


CLASSIFIER_SCORES = {
    "accuracy": "accuracy",
    "f1": "F1",
    "matthews": "Matthews' correlation",
    "pearson": "Pearson's correlation",
    "spearman": "Spearman's correlation",
}
"""The scores of a classifier, for classes and for numbers, by name; higher is better."""


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
