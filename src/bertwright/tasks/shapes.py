"""The types of scores in the course of a training, in summary.json and in the scores of `finetune`."""

from __future__ import annotations

from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Number, Text


class Scored(TypedDict):
    """A score that was taken in training."""

    step: Count
    """Optimizer steps before it, over all phases."""
    number: Count
    """How many scores there were with it: the epochs, if each is scored."""
    score: Number


class Epochs(TypedDict):
    """A held-out score in the course of training: the last one is that of the result."""

    name: Text
    last: Scored
    best: Scored
    note: Text
