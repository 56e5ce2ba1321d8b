"""The counts of the stage `examples`, as stored in its manifest."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Flag, Number, Score, Text
from bertwright.corpus.shapes import Overlap
from bertwright.vocab.shapes import Rates

_Set = Annotated[str, Field(strict=True, pattern="^[1-9][0-9]{0,8}(-|$)")]
"""The name of a set of sequences, which begins with their maximum length in tokens."""


class _Lengths(TypedDict):
    lengths: Annotated[list[Count], Field(min_length=1)]
    mean_length: Number
    deviation: Number
    """Standard deviation of the lengths, in tokens."""
    longest: Count
    label_share: Score


def _of_counted(counted: _Lengths) -> _Lengths:
    # An example has at least its special tokens; forecasts divide by the mean.
    if any(counted["lengths"]) and counted["mean_length"] < 1:
        raise ValueError(f"mean_length = {counted['mean_length']:g} must be at least 1 token, because it has examples")
    return counted


_Sequences = Annotated[_Lengths, AfterValidator(_of_counted)]


class _HeldOut(TypedDict, total=False):
    """The held-out data of a phase in a run without a corpus."""

    examples: Count
    documents: Count
    share: Number | None
    files: list[Text]


class _OfSource(TypedDict):
    name: Text
    documents: Count


class _Split(TypedDict, total=False):
    sequences: dict[_Set, _Sequences]
    examples: Count
    classes: list[Count]
    files: list[Text]
    repeated: Count
    majority: Score
    majority_label: Text
    chance: Score
    constant_loss: Score
    documents: Count
    sentences: Count
    tokens: Count
    rows: dict[Text, list[Count]]
    unigram_loss: Score
    phases: dict[Text, _HeldOut]
    sources: list[_OfSource]
    """The documents that are held out of each source of the corpus, if it has several."""


class _Imported(TypedDict, total=False):
    kind: Text
    examples: Count
    static: Flag


class _Counts(TypedDict, total=False):
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


def _of_all_classes(counts: _Counts) -> _Counts:
    labels = counts.get("labels", [])
    # A single label is the name of numbers, of which there are no classes.
    classes = len(labels) if len(labels) > 1 else 0
    for split in (counts.get("train", {}), counts.get("heldout", {})):
        if len(split.get("classes", range(classes))) != classes:
            raise ValueError(f"classes must have {classes:,} numbers, one for each class")
    return counts


Counts = Annotated[_Counts, AfterValidator(_of_all_classes)]
"""The counts of examples, checked as a whole."""


class _Examples(TypedDict, total=False):
    plan: Text


class Settings(TypedDict, total=False):
    """The settings of examples that others read."""

    examples: _Examples
