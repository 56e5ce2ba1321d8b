"""The certificate as it is written, `certificate.json`, and as reports read it."""

from __future__ import annotations

from typing import Literal, NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Number, Text

CERTIFICATE = "certificate.json"

Status = Literal["reference", "agrees", "known", "differs", "refused", "missing", "failed", "loads"]
"""Of a runtime: others are compared with it; same answers; the same but for texts with a known fault of its tokenizer;
other answers; cannot run this model; lacks something on this machine; gave an error; was not run, but loads the model
by the rules in its sources."""


class Difference(TypedDict):
    """How far an output of a runtime is from that of the reference, over all lines."""

    largest: Number
    """The largest difference of two numbers, as a share of the largest number where that is above 1."""
    mean: Number
    """The mean difference, in the same unit."""
    cosine: Number
    """The mean cosine of the lines, each taken as one vector."""


class Example(TypedDict):
    """A text whose ids differ, cut to where they do."""

    text: Text
    expected: list[Text]
    """The tokens from the first that differs."""
    given: list[Text]
    reason: Text
    """The known fault of the runtime that it is; "" if none is known."""


class Row(TypedDict):
    """What one runtime answered."""

    runtime: Text
    title: Text
    version: Text
    status: Status
    why: Text
    """Why it differs, refused or failed, what it lacks, or as what it loads the model; "" if it agrees."""
    lines: NotRequired[Count]
    """Texts whose ids were compared."""
    other_ids: NotRequired[Count]
    """Texts whose ids differ; their outputs are not compared."""
    examples: NotRequired[list[Example]]
    outputs: NotRequired[dict[Text, Difference]]
    compared: NotRequired[Count]
    """Texts whose outputs were compared."""
    same_first: NotRequired[Number | None]
    """Share of answers whose best class, word or nearest line is the reference's; None if there is no choice."""
    right: NotRequired[Number]
    """Share of the words behind a [MASK] that are its best guess, of those that are one entry of the vocabulary."""
    guessed: NotRequired[Count]
    """How many such words there are."""
    milliseconds: NotRequired[Number]
    """Median time of one text, one thread, texts one after another."""
    memory_bytes: NotRequired[Count]
    """Peak memory above that of a process that has not opened the model."""


class Certificate(TypedDict):
    """How all runtimes of a machine answer the same lines."""

    architecture: Text
    weights: Text
    """SHA-256 of the weights."""
    lines: Text
    """Where the lines come from."""
    machine: Text
    rows: list[Row]
    made: Text
    """The version of bertwright."""


SHAPE = TypeAdapter(Certificate)
