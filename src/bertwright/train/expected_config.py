"""The recipe's choice of which training loss is expected at which step. Knows no torch."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from bertwright.core.config import Section


class ExpectedLoss(Section):
    """A band of the training loss at one step."""

    step: int = Field(ge=1)
    """The step, counted over all phases; judged is the first row of metrics at or after it."""
    low: float = Field(0.0, ge=0)
    """The least loss that is expected, all terms added (nats)."""
    high: float = Field(gt=0)
    """The largest."""

    @model_validator(mode="after")
    def _a_band(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low {self.low:g} is not below high {self.high:g}; exchange them, or widen the band")
        return self
