"""The types of a forecast of a run: `plan` makes it, the pipeline keeps it as `forecast.json`, the report grades it."""

from __future__ import annotations

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Flag, Number, Text


class Memory(TypedDict):
    """Bytes on each device, by part."""

    weights: Number
    gradients: Number
    optimizer: Number
    activations: Number
    batches: Number
    teacher: Number
    program: Number


class Phase(TypedDict):
    """One phase of training; values that depend on unknown examples are None."""

    steps: Count | None
    sequences: Count | None
    tokens: Number | None
    epochs: Number | None
    """How often the text is read."""
    micro_batch: Count
    micro_batches: Count
    attention: Text
    """The kernel that computes attention, a value of `train.attention`."""
    precision: Text
    """The kind of `train.precision`; for `auto` the one that is expected."""
    memory: Memory
    memory_bytes: Number
    step_seconds: Number
    tokens_per_second: Number
    hours: Number | None


class Remedy(TypedDict):
    """Keys that make the training fit, its memory with them, and its time relative to the original."""

    keys: list[Text]
    memory_bytes: Number
    times_as_long: Number


class MachineFacts(TypedDict):
    """The machine that the plan is for."""

    title: Text
    device: Text
    ranks: Count
    nodes: Count
    memory_bytes: Number
    """Of each device; 0 if not known."""
    watts: Number
    price: Number
    currency: Text


class Spent(TypedDict):
    """Hours of wall-clock time, energy in kilowatt hours, and cost."""

    calibrated: Text
    hours: dict[Text, Number | None]
    total_hours: Number | None
    low_hours: Number | None
    high_hours: Number | None
    energy_kwh: Number | None
    cost: Number | None


class Plan(Spent):
    """A forecast of a run; sizes in bytes."""

    machine: MachineFacts
    basis: Text
    parameters: Count
    text_bytes: Number | None
    phases: list[Phase]
    memory_bytes: Number
    fits: Flag
    remedies: list[Remedy]
    disk: dict[Text, Number | None]
    disk_left: dict[Text, Number | None]
    """What the run leaves on disk, where `disk` is the peak."""
    tokens_per_second: Number


PLAN = TypeAdapter(Plan)
