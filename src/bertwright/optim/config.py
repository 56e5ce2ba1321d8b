"""The recipe's choice of optimizer and of learning-rate schedule; knows no torch."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from bertwright.core.config import Section
from bertwright.optim.cosine import CosineSchedule
from bertwright.optim.schedule import ConstantSchedule, LinearSchedule, PolyNvidiaSchedule, PolySchedule
from bertwright.optim.wsd import WsdSchedule

Beta = Annotated[float, Field(ge=0, lt=1)]


class LambConfig(Section):
    """LAMB (You et al. 2020) as in NVIDIA's BERT: layer-wise trust ratios for very large batches."""

    kind: Literal["lamb"] = "lamb"
    """Names this optimizer."""
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    """Decay rates of the averages of the gradient and of its square, per update."""
    eps: float = Field(1e-6, gt=0)
    """Added to the root of the second moment."""
    weight_decay: float = Field(0.01, ge=0)
    """Multiple of the weights added to the update; biases and layer norms do not decay."""
    bias_correction: bool = True
    """Whether to divide the moments by 1 - beta^step; Intel's and Google's variants do not."""
    trust_ratio_on_undecayed: bool = False
    """Whether tensors that do not decay are scaled by their trust ratio too (NVIDIA calls this NVLAMB)."""
    max_grad_norm: float = Field(1.0, ge=0)
    """Longest global gradient norm that is not scaled down; 0 turns clipping off."""


class AdamWConfig(Section):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    kind: Literal["adamw"] = "adamw"
    """Names this optimizer."""
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    """Decay rates of the averages of the gradient and of its square, per update."""
    eps: float = Field(1e-6, gt=0)
    """Added to the root of the second moment; 1e-6 as in Google's BERT (optimization.py), where torch has 1e-8."""
    weight_decay: float = Field(0.01, ge=0)
    """Share of the weights taken off per update and unit of learning rate; biases and layer norms do not decay."""
    max_grad_norm: float = Field(1.0, ge=0)
    """Longest global gradient norm that is not scaled down; 0 turns clipping off."""


OptimConfig = Annotated[LambConfig | AdamWConfig, Field(discriminator="kind")]


def _by_name(value: Any) -> Any:
    """`schedule = "linear"` is short for `schedule = {kind = "linear"}`."""
    return {"kind": value} if isinstance(value, str) else value


ScheduleConfig = Annotated[
    LinearSchedule | PolySchedule | PolyNvidiaSchedule | ConstantSchedule | CosineSchedule | WsdSchedule,
    Field(discriminator="kind"),
    BeforeValidator(_by_name),
]
"""How the learning rate falls after the warm-up."""
