"""The recipe's choice of what a bad gradient, or a bad loss, leads to. Knows no torch."""

from __future__ import annotations

from pydantic import Field, model_validator

from bertwright.core.config import Section


class GuardConfig(Section):
    """Updates whose gradient or loss is not finite are always dropped."""

    spike: float = Field(0.0, ge=0)
    """An update is dropped too when its gradient norm is above this many times the median of those before it; 0: none
    is. 10 is far above what a sound training shows."""
    loss_spike: float = Field(0.0, ge=0)
    """An update is dropped too when the loss of its step is above this many times the median of those before it; more
    than 1, or 0: none is. Losses vary far less than norms: 1.5 is above what a sound training shows once it learns."""
    window: int = Field(100, ge=10)
    """Applied updates whose norms and losses those medians are of; no update is judged before there are so many."""
    patience: int = Field(20, ge=1)
    """Dropped updates in a row after which training goes back to a checkpoint, or stops."""
    returns: int = Field(0, ge=0)
    """How often in each phase training may go back to the newest checkpoint before the dropped updates and leave out
    the batches since; 0: it stops at once."""

    @model_validator(mode="after")
    def _a_loss_that_may_pass(self) -> GuardConfig:
        if 0 < self.loss_spike <= 1:
            raise ValueError(
                f"loss_spike {self.loss_spike:g} would drop every update whose loss is not below the median; give more "
                "than 1, or 0 for none"
            )
        return self
