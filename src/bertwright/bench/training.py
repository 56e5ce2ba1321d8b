"""Settings sent to a side's process, and the measurements it returns. Does not import torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Side = Literal["bertwright", "trainer", "trainer-tuned"]
Precision = Literal["fp32", "bf16"]


@dataclass(frozen=True)
class Training:
    """How a side trains."""

    precision: Precision = "fp32"
    threads: int = 2
    dropout: float = 0.1
    """Dropout probability of hidden states."""
    attention_dropout: float = 0.0
    """Dropout probability of attention weights."""


class Step(NamedTuple):
    """The measurements of one step."""

    seconds: float
    processor_seconds: float
    """Summed over all threads."""
    floor: float | None = None
    """Seconds that its operations would take at the speed of the network's matrix products alone, measured right before
    the block of the step; None for a side whose operations we cannot count."""
