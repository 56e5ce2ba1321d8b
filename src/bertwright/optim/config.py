"""The recipe's choice of optimizer and of learning-rate schedule; knows no torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from bertwright.core.config import Section, by_kind
from bertwright.optim.cosine import CosineSchedule
from bertwright.optim.schedule import ConstantSchedule, LinearSchedule, PolyNvidiaSchedule, PolySchedule
from bertwright.optim.wsd import WsdSchedule

Beta = Annotated[float, Field(ge=0, lt=1)]


class GroupConfig(Section):
    """What is different for tensors of certain names."""

    pattern: str = Field(min_length=1)
    """Names of the tensors, with * for anything, such as "*.embeddings.*"; `inspect` of a trained model lists them."""
    learning_rate_scale: float = Field(1.0, ge=0)
    """Multiple of the phase's learning rate; 0 keeps the tensors as they are."""
    weight_decay: float | None = Field(None, ge=0)
    """In place of the optimizer's weight decay, also for biases and layer norms; left out, each keeps its own."""


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
    max_trust_ratio: float = Field(0.0, ge=0)
    """Largest trust ratio; 0 bounds none. You et al. 2020 bound the norm of the weights (their φ) and leave open at
    what; NVIDIA bounds nothing."""
    grad_averaging: bool = True
    """Whether the gradient enters the first moment times 1 - beta, as in Adam; otherwise whole, as apex offers."""
    max_grad_norm: float = Field(1.0, ge=0)
    """Longest global gradient norm that is not scaled down; 0 turns clipping off."""
    clip_before_reduction: bool = False
    """Whether each rank clips its own part of the gradient, to max_grad_norm divided by the number of ranks, before the
    parts are added up, as MLCommons' reference does; otherwise the sum is clipped. What is learned then hangs on how
    many ranks there are."""
    groups: tuple[GroupConfig, ...] = ()
    """Tensors with a learning rate or weight decay of their own, each named by one pattern."""

    @model_validator(mode="after")
    def _something_to_clip(self) -> LambConfig:
        if self.clip_before_reduction and not self.max_grad_norm:
            raise ValueError(
                "clip_before_reduction says where gradients are clipped, and max_grad_norm 0 clips none; set "
                "max_grad_norm=1.0, or leave clip_before_reduction out"
            )
        return self


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
    groups: tuple[GroupConfig, ...] = ()
    """Tensors with a learning rate or weight decay of their own, each named by one pattern."""


class MuonConfig(Section):
    """Muon (Jordan 2024) for the matrices of the layers, AdamW for embeddings, heads, biases and layer norms.

    The learning rate is AdamW's: updates of matrices are brought to the size of AdamW's (Liu et al. 2025).
    """

    kind: Literal["muon"] = "muon"
    """Names this optimizer."""
    momentum: Beta = 0.95
    """Decay rate of the average of a matrix's gradient, per update; Nesterov's kind."""
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    """Decay rates of AdamW's averages of the gradient and of its square, per update."""
    eps: float = Field(1e-6, gt=0)
    """Added to the root of AdamW's second moment."""
    weight_decay: float = Field(0.1, ge=0)
    """Share of the weights taken off per update and unit of learning rate; biases and layer norms do not decay."""
    max_grad_norm: float = Field(1.0, ge=0)
    """Longest global gradient norm that is not scaled down; 0 turns clipping off."""
    groups: tuple[GroupConfig, ...] = ()
    """Tensors with a learning rate or weight decay of their own, each named by one pattern."""


OptimConfig = Annotated[LambConfig | AdamWConfig | MuonConfig, Field(discriminator="kind")]


ScheduleConfig = Annotated[
    LinearSchedule | PolySchedule | PolyNvidiaSchedule | ConstantSchedule | CosineSchedule | WsdSchedule,
    Field(discriminator="kind"),
    BeforeValidator(by_kind),
]
"""How the learning rate falls after the warm-up."""
