"""How a side trains, and what it says of each step: what goes to its process and what comes back. Knows no torch."""

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
    """Of hidden states (a probability)."""
    attention_dropout: float = 0.0
    """Of attention weights (a probability)."""


class Step(NamedTuple):
    """What one step took."""

    seconds: float
    processor_seconds: float
    """Of all threads."""
    floor: float | None = None
    """Seconds that its operations would take at the speed of the network's matrix products alone, measured just before
    the block of the step; None of a side whose operations are not ours to count."""
