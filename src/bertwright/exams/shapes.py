"""The types of a run's `exams/NAME.json`: what its checkpoints score in a suite."""

from __future__ import annotations

from typing import NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Flag, Number, Text

FOLDER = "exams"
"""The folder of these files in a run."""


class ScoreJson(TypedDict):
    """One score; see `exam.Score`."""

    exam: Text
    name: Text
    value: Number
    interval: tuple[Number, Number] | None
    chance: Number | None
    healthy: Text
    share: Flag
    text: NotRequired[Text]


class Scored(TypedDict):
    """A checkpoint, or the untrained network (`weights` is "" and all numbers 0), and its scores."""

    checkpoint: Text
    step: Count
    tokens: Count
    hours: Number
    tflops: Number
    weights: Text
    """SHA-256 over the files of its weights."""
    scores: list[ScoreJson]


class Curve(TypedDict):
    """The scores of a run's checkpoints in a suite, in order of their steps."""

    suite: Text
    content: Text
    """SHA-256 over what the exams ask."""
    points: list[Scored]


CURVE = TypeAdapter(Curve)
