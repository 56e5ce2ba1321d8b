"""The types of the counts in the manifest of `export`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Number, Text, Unfinished


class Counts(TypedDict, total=False):
    """What was written, and the differences between the reloaded and the trained model."""

    architecture: Text
    vocab_size: Count
    parameters: Count
    texts_compared: Count
    mlm_difference: Number
    nsp_difference: Number
    classification_difference: Number
    hidden_difference: Number
    predictions_compared: Count
    transformers: Text
    unfinished: Unfinished


class _Texts(TypedDict, total=False):
    language: Text


class Settings(TypedDict, total=False):
    """The settings of an export that others read."""

    texts: _Texts


def largest_difference(counts: Mapping[str, Any]) -> float:
    """The largest difference between the logits, or hidden states, of the trained network and of the exported one."""
    return max(float(counts[name]) for name in counts if name.endswith("_difference"))
