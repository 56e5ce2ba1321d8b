"""Recipe settings for the training loss expected at given steps. Does not import torch."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from bertwright.core.config import Section


class ExpectedLoss(Section):
    """Expected band of the training loss at one step."""

    step: int = Field(ge=1)
    """The step, counted over all phases; the first metrics row at or after it is checked."""
    low: float = Field(0.0, ge=0)
    """Lowest expected loss, summed over all terms (nats)."""
    high: float = Field(gt=0)
    """Highest expected loss, summed over all terms (nats)."""

    @model_validator(mode="after")
    def _a_band(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low {self.low:g} is not below high {self.high:g}; exchange the two, or widen the band")
        return self
