"""What `export` counts, as its manifest has it."""

from __future__ import annotations

from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Number, Text
from bertwright.train.shapes import Unfinished


class Counts(TypedDict, total=False):
    """What was written, and how far it is from the trained model when it is loaded back."""

    architecture: Text
    vocab_size: Count
    parameters: Count
    texts_compared: Count
    mlm_difference: Number
    nsp_difference: Number
    predictions_compared: Count
    transformers: Text
    unfinished: Unfinished
