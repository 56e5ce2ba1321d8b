"""The recipe's choice of how ranks hold the weights. Knows no torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from bertwright.core.config import Section, by_kind


class AutoConfig(Section):
    """`single` where one process trains, `ddp` where several do."""

    kind: Literal["auto"] = "auto"
    """Names this choice."""


class SingleConfig(Section):
    """One process with all weights; several ranks are refused."""

    kind: Literal["single"] = "single"
    """Names this engine."""


class DdpConfig(Section):
    """Every rank holds all weights and all of the optimizer's state; gradients are summed over the ranks while the last
    micro-batch of a step is still on its way back."""

    kind: Literal["ddp"] = "ddp"
    """Names this engine."""
    reduction: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Numbers in which gradients travel and are summed. 16 bits halve what travels, and round each gradient."""
    bucket_mb: float = Field(25.0, gt=0)
    """Gradients (MB) that are summed in one message."""


class ZeroConfig(Section):
    """As `ddp`, but each rank keeps the optimizer's state of its own tensors alone, whole ones, moves those, and sends
    them to the others (ZeRO stage 1, Rajbhandari et al. 2020)."""

    kind: Literal["zero"] = "zero"
    """Names this engine."""
    reduction: Literal["fp32", "bf16", "fp16"] = "fp32"
    """As for `ddp`."""
    bucket_mb: float = Field(25.0, gt=0)
    """As for `ddp` (MB)."""


class FsdpConfig(Section):
    """Each rank holds a part of every tensor, of its gradient and of the optimizer's state, and a layer is whole only
    while it computes (torch's fully_shard, ZeRO stage 3)."""

    kind: Literal["fsdp"] = "fsdp"
    """Names this engine."""
    reduction: Literal["fp32", "bf16", "fp16"] = "fp32"
    """As for `ddp`."""


class DeepSpeedConfig(Section):
    """DeepSpeed's ZeRO (Rajbhandari et al. 2020) by the package itself, with AdamW; the extra `deepspeed`."""

    kind: Literal["deepspeed"] = "deepspeed"
    """Names this engine."""
    stage: Literal[1, 2, 3] = 1
    """What is held in parts: the optimizer's state (1), gradients too (2), weights too (3). Stage 0 is `ddp`."""


EngineConfig = Annotated[
    AutoConfig | SingleConfig | DdpConfig | ZeroConfig | FsdpConfig | DeepSpeedConfig,
    Field(discriminator="kind"),
    BeforeValidator(by_kind),
]
"""How ranks hold the weights, and what sums their gradients."""


def wrong_ranks(config: EngineConfig, ranks: int) -> str:
    """Why the engine cannot have so many ranks; "" where it can."""
    if not isinstance(config, SingleConfig) or ranks == 1:
        return ""
    return f"single is for one process, and {ranks:,} ranks train; set train.engine=auto, or start one"


def chosen(config: EngineConfig, ranks: int) -> EngineConfig:
    """The engine itself: what `auto` stands for with so many ranks."""
    if not isinstance(config, AutoConfig):
        return config
    return DdpConfig() if ranks > 1 else SingleConfig()
