"""The counts of the stage `examples`, as stored in its manifest."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Flag, Number, Score, Text
from bertwright.corpus.shapes import Overlap
from bertwright.vocab.shapes import Rates


class _Sequences(TypedDict):
    lengths: list[Count]
    mean_length: Number
    deviation: NotRequired[Number]
    """Standard deviation of the lengths, in tokens; older examples lack it, and `longest`."""
    longest: NotRequired[Count]
    label_share: Score


class _HeldOut(TypedDict, total=False):
    """The held-out data of a phase in a run without a corpus."""

    examples: Count
    documents: Count
    share: Number | None
    files: list[Text]


class _Split(TypedDict, total=False):
    sequences: dict[Text, _Sequences]
    examples: Count
    classes: list[Count]
    files: list[Text]
    repeated: Count
    majority: Score
    majority_label: Text
    constant_loss: Score
    documents: Count
    sentences: Count
    tokens: Count
    rows: dict[Text, list[Count]]
    unigram_loss: Score
    phases: dict[Text, _HeldOut]


class _Imported(TypedDict, total=False):
    kind: Text
    examples: Count
    static: Flag


class Counts(TypedDict, total=False):
    """Counts of both splits and of imported data."""

    vocabulary: Text
    shards: Count
    documents: Count
    train: _Split
    heldout: _Split
    heldout_contamination: Overlap
    labels: list[Text]
    imported: dict[Text, _Imported]
    text: Rates
