"""The recipe's choice of how ranks hold the weights. Knows no torch."""

from __future__ import annotations

from typing import Literal

from bertwright.core.config import Section


class DdpConfig(Section):
    """Every rank holds all weights, and gradients are summed over the ranks; one process alone sums nothing."""

    kind: Literal["ddp"] = "ddp"
    """Names this engine."""


EngineConfig = DdpConfig
"""How ranks hold the weights; the union of the sections when there are several."""
