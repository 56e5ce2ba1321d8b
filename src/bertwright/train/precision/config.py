"""Recipe settings for numeric precision. Does not import torch."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from bertwright.core.config import Section, by_kind


class AutoPrecisionConfig(Section):
    """The fastest precision in which training works well, chosen at the start and kept when training resumes. On a GPU:
    bf16 where it has units for it, else fp16, else fp32. On a CPU with units for bf16: whichever of fp32 and bf16 is
    measured to be faster in the training's own passes, bf16 if it is at least 1.2 times as fast; without such units, or
    if training takes only minutes, fp32."""

    kind: Literal["auto"] = "auto"
    """Selects this precision."""


class Fp32Config(Section):
    """Everything in float32."""

    kind: Literal["fp32"] = "fp32"
    """Selects this precision."""


class Tf32Config(Section):
    """float32, but with the factors of matrix products rounded to a 10-bit fraction, as tensor cores of Ampere or later
    GPUs compute them."""

    kind: Literal["tf32"] = "tf32"
    """Selects this precision."""


class Bf32Config(Section):
    """float32, but with the factors of matrix products rounded to bfloat16 and summed in float32, as CPUs with AMX
    compute them. Products too small for oneDNN stay in float32."""

    kind: Literal["bf32"] = "bf32"
    """Selects this precision."""


class Bf16Config(Section):
    """Matrix products and the states between layers in bfloat16, the rest in float32 (autocast), or everything in
    bfloat16."""

    kind: Literal["bf16"] = "bf16"
    """Selects this precision."""
    weights: Literal["fp32", "bf16"] = "fp32"
    """Dtype of the network's weights. `bf16`: activations and the gradients of a micro-batch are bfloat16, too; the
    weights that the optimizer updates, checkpoints, gradient sums and the loss stay float32."""
    allow_slow: bool = False
    """Whether to train even if the device has no unit for it; on a CPU each step then takes ten times as long."""


LARGEST_SCALE = 2.0**31
"""Upper limit of the loss scale, far above any useful value: otherwise it would grow to infinity if gradients
vanish."""


class Fp16Config(Section):
    """Matrix products in float16, the rest in float32 (autocast), with the loss scaled so that small gradients do not
    vanish (Micikevicius et al. 2018 §3.2). If a gradient overflows, the update is dropped and the scale is halved."""

    kind: Literal["fp16"] = "fp16"
    """Selects this precision."""
    initial_scale: float = Field(65536.0, ge=1, le=LARGEST_SCALE)
    """Initial loss scale."""
    growth_interval: int = Field(2000, ge=1)
    """Number of updates without an overflow after which the scale is doubled."""
    min_scale: float = Field(1.0, gt=0)
    """Lower limit of the scale."""
    allow_slow: bool = False
    """Whether to train even on a CPU, where float16 products take many times as long."""

    @model_validator(mode="after")
    def _a_scale_above_its_bound(self) -> Fp16Config:
        if self.min_scale > self.initial_scale:
            raise ValueError(
                f"min_scale {self.min_scale:g} is more than initial_scale {self.initial_scale:g}, so an overflow would "
                "raise the scale; lower min_scale, or raise initial_scale"
            )
        return self


def _not_intels_mode(value: Any) -> Any:
    """Return the value; `ValueError` explains Intel's mode that is two keys here."""
    if value == "avx-fp32":
        raise ValueError(
            "Intel's mode avx-fp32 is fp32 with a limit of instructions: set train.precision=fp32 and "
            "train.cpu_isa=avx512. Intel's mode fp32 is fp32 with train.cpu_isa=amx; with auto, the default, torch "
            "uses all instructions that the processor has"
        )
    return value


PrecisionConfig = Annotated[
    AutoPrecisionConfig | Fp32Config | Tf32Config | Bf32Config | Bf16Config | Fp16Config,
    Field(discriminator="kind"),
    BeforeValidator(by_kind),
    BeforeValidator(_not_intels_mode),  # runs first
]
"""Numeric precision of the network."""
