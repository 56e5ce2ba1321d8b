"""What `evaluate` counts, as its manifest has it, and `predictions.json`."""

from __future__ import annotations

from typing import Annotated, Required

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Flag, Number, Score, Text
from bertwright.train.shapes import Unfinished


class Counts(TypedDict, total=False):
    """The held-out scores beside their baselines; losses in nats, accuracies and shares from 0 to 1."""

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


METRICS = ("accuracy", "f1", "matthews", "pearson", "spearman")
"""The scores of a classifier, those of classes and those of numbers."""


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
"""Nats by which a model that uses the context is below the loss of word frequencies, at the least."""


def untrained(loss: float | None, unigram: float) -> bool:
    """Whether a held-out loss shows no use of the context; None is no number."""
    return loss is None or loss > unigram - UNTRAINED
