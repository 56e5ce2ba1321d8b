"""Recipe settings for handling bad gradients and losses. Does not import torch."""

from __future__ import annotations

from pydantic import Field, model_validator

from bertwright.core.config import Section


class GuardConfig(Section):
    """Handling of bad updates. Updates whose gradient or loss is not finite are always dropped."""

    spike: float = Field(0.0, ge=0)
    """Also drop an update whose gradient norm exceeds this multiple of the median of earlier norms; 0: no limit. 10 is
    far above what a healthy training shows."""
    loss_spike: float = Field(0.0, ge=0)
    """Also drop an update whose loss exceeds this multiple of the median of earlier losses; greater than 1, or 0: no
    limit. Losses vary far less than norms: 1.5 is above what a healthy training shows once it learns."""
    window: int = Field(100, ge=10)
    """Number of applied updates over which the medians are taken; no update is judged before that many were applied."""
    patience: int = Field(20, ge=1)
    """Dropped updates in a row after which training goes back to a checkpoint, or stops. Overflows that lower the loss
    scale of fp16 do not count."""
    returns: int = Field(0, ge=0)
    """How often per phase training may go back to the newest checkpoint before the dropped updates and leave out the
    batches since then; 0: it stops at once."""

    @model_validator(mode="after")
    def _a_loss_that_may_pass(self) -> GuardConfig:
        if 0 < self.loss_spike <= 1:
            raise ValueError(
                f"loss_spike {self.loss_spike:g} would drop every update with a loss that is not below the median; "
                "set it above 1, or to 0 to drop none"
            )
        if self.window != type(self).model_fields["window"].default and not (self.spike or self.loss_spike):
            raise ValueError(
                f"window {self.window} is for spike and loss_spike, which are both 0: set one of them, or leave it out"
            )
        return self
