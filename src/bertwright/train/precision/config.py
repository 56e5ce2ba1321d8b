"""The recipe's choice of the numbers that a network computes in. Knows no torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from bertwright.core.config import Section, by_kind


class Fp32Config(Section):
    """Everything in float32."""

    kind: Literal["fp32"] = "fp32"
    """Names this precision."""


class Tf32Config(Section):
    """float32 whose matrix products take factors of 10 bits after the point: a GPU of Ampere or later does them on its
    tensor cores."""

    kind: Literal["tf32"] = "tf32"
    """Names this precision."""


class Bf32Config(Section):
    """float32 whose matrix products take factors rounded to bfloat16 and add in float32: a processor with AMX does
    them on its tiles. Products too small for oneDNN stay in float32."""

    kind: Literal["bf32"] = "bf32"
    """Names this precision."""


class Bf16Config(Section):
    """Matrix products in bfloat16, the rest in float32 (autocast), or everything in bfloat16."""

    kind: Literal["bf16"] = "bf16"
    """Names this precision."""
    weights: Literal["fp32", "bf16"] = "fp32"
    """In what the network holds its weights. `bf16`: states, layer norms and gradients of a micro-batch too; what the
    optimizer moves and checkpoints hold stays float32, as do sums of gradients and the loss."""
    allow_slow: bool = False
    """Whether to train also where the processor has no unit for it and every step takes ten times as long."""


LARGEST_SCALE = 2.0**31
"""The most that a loss is scaled by, far above any use: else it would grow to infinity where gradients vanish."""


class Fp16Config(Section):
    """Matrix products in float16, the rest in float32 (autocast), the loss scaled so that small gradients survive
    (Micikevicius et al. 2018 §3.2). An update whose gradient overflows is dropped and the scale is halved."""

    kind: Literal["fp16"] = "fp16"
    """Names this precision."""
    initial_scale: float = Field(65536.0, ge=1, le=LARGEST_SCALE)
    """Factor of the loss at the start."""
    growth_interval: int = Field(2000, ge=1)
    """Updates without an overflow after which the scale is doubled."""
    min_scale: float = Field(1.0, gt=0)
    """The scale is not halved below this."""
    allow_slow: bool = False
    """Whether to train also on a processor, whose float16 products take many times as long."""

    @model_validator(mode="after")
    def _a_scale_above_its_bound(self) -> Fp16Config:
        if self.min_scale > self.initial_scale:
            raise ValueError(
                f"min_scale {self.min_scale:g} is more than initial_scale {self.initial_scale:g}, so an overflow would "
                "raise the scale; lower min_scale, or raise initial_scale"
            )
        return self


class Fp8Config(Section):
    """As bfloat16 under autocast, with the linear maps of the layers in float8 (a GPU of Ada or Hopper, or later, and
    the package torchao)."""

    kind: Literal["fp8"] = "fp8"
    """Names this precision."""
    allow_slow: bool = False
    """Whether to train also on a processor, where float8 is only imitated: to look at what it does to a loss."""


PrecisionConfig = Annotated[
    Fp32Config | Tf32Config | Bf32Config | Bf16Config | Fp16Config | Fp8Config,
    Field(discriminator="kind"),
    BeforeValidator(by_kind),
]
"""What a network computes in."""
