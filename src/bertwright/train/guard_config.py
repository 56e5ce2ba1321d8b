"""The recipe's choice of what a bad gradient leads to. Knows no torch."""

from __future__ import annotations

from pydantic import Field

from bertwright.core.config import Section


class GuardConfig(Section):
    """Updates whose gradient is not finite are always dropped."""

    spike: float = Field(0.0, ge=0)
    """An update is dropped too when its gradient norm is above this many times the median of those before it; 0: none
    is. 10 is far above what a sound training shows."""
    window: int = Field(100, ge=10)
    """Applied updates whose norms that median is of; no update is judged before there are so many."""
    patience: int = Field(20, ge=1)
    """Dropped updates in a row after which training goes back to a checkpoint, or stops."""
    returns: int = Field(0, ge=0)
    """How often in each phase training may go back to the newest checkpoint before the dropped updates and leave out
    the batches since; 0: it stops at once."""
