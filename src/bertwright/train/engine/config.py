"""Recipe settings for how ranks hold the weights. Does not import torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from bertwright.core.config import Section, by_kind


class AutoConfig(Section):
    """`single` for one process, `ddp` for several."""

    kind: Literal["auto"] = "auto"
    """Selects this choice."""


class SingleConfig(Section):
    """One process with all weights; a job with several ranks is refused."""

    kind: Literal["single"] = "single"
    """Selects this engine."""


class DdpConfig(Section):
    """Every rank holds all weights and the complete optimizer state; gradients are all-reduced during the backward pass
    of a step's last micro-batch."""

    kind: Literal["ddp"] = "ddp"
    """Selects this engine."""
    reduction: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Format in which gradients are sent and summed. 16 bits halve the traffic, and round each gradient."""
    bucket_mb: float = Field(25.0, gt=0)
    """Gradients (MB) that are summed in one message."""


class ZeroConfig(Section):
    """As `ddp`, but each rank keeps the optimizer state of only its own, complete tensors, updates those, and sends
    them to the others (ZeRO stage 1, Rajbhandari et al. 2020)."""

    kind: Literal["zero"] = "zero"
    """Selects this engine."""
    reduction: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Format in which gradients are sent and summed, as for `ddp`."""
    bucket_mb: float = Field(25.0, gt=0)
    """Gradients (MB) that are summed in one message, as for `ddp`."""


class FsdpConfig(Section):
    """Each rank holds a shard of every tensor, of its gradient and of its optimizer state; a layer is gathered only
    while it computes (torch's fully_shard, ZeRO stage 3)."""

    kind: Literal["fsdp"] = "fsdp"
    """Selects this engine."""
    reduction: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Format in which gradients are sent and summed, as for `ddp`."""


class DeepSpeedConfig(Section):
    """DeepSpeed's ZeRO (Rajbhandari et al. 2020), run by the DeepSpeed package, with AdamW; needs the extra
    `deepspeed`."""

    kind: Literal["deepspeed"] = "deepspeed"
    """Selects this engine."""
    stage: Literal[1, 2, 3] = 1
    """What is sharded: the optimizer state (1), also gradients (2), also weights (3). Stage 0 is `ddp`."""


EngineConfig = Annotated[
    AutoConfig | SingleConfig | DdpConfig | ZeroConfig | FsdpConfig | DeepSpeedConfig,
    Field(discriminator="kind"),
    BeforeValidator(by_kind),
]
"""How ranks hold the weights, and how gradients are summed."""


NO_ROWS = (
    "train.engine = deepspeed splits tensors at any element, so that it cannot train single rows of one "
    "(train.phases.N.trains = new-rows). Set train.engine=zero, or trains=all."
)
"""Why DeepSpeed trains no phase of new rows."""


def wrong_ranks(config: EngineConfig, ranks: int) -> str:
    """Return why the engine cannot have this number of ranks; "" if it can."""
    if not isinstance(config, SingleConfig) or ranks == 1:
        return ""
    return f"single supports only one process, but {ranks:,} ranks train; set train.engine=auto, or start one process"


def resolve_engine(config: EngineConfig, ranks: int) -> EngineConfig:
    """Return the engine's config, with `auto` resolved for this number of ranks."""
    if not isinstance(config, AutoConfig):
        return config
    return DdpConfig() if ranks > 1 else SingleConfig()
