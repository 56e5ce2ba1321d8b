"""The types of the counts in the manifest of `evaluate`, and of `predictions.json`."""

from __future__ import annotations

from typing import Annotated, Required

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Flag, Number, Score, Text, Unfinished
from bertwright.corpus.shapes import Overlap


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


class _Guess(TypedDict):
    token: Text
    probability: Annotated[Number, Field(ge=0, le=1)]


class _Prediction(TypedDict, total=False):
    source: Text
    text: Required[Text]
    gold: Required[Text | None]
    top: Required[list[_Guess]]


PREDICTIONS = TypeAdapter(list[_Prediction])
