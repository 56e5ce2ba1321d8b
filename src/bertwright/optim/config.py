"""The optimizer and the learning-rate schedule of a recipe. Does not import torch."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from bertwright.core.config import Section, by_kind
from bertwright.core.plugins import PLUGINS, Plugin
from bertwright.optim.schedule import (
    ConstantSchedule,
    CosineSchedule,
    LinearSchedule,
    PolyNvidiaSchedule,
    PolySchedule,
    SchedulePlugin,
    WsdSchedule,
)

Beta = Annotated[float, Field(ge=0, lt=1)]


class GroupConfig(Section):
    """Overrides for tensors whose names match a pattern."""

    pattern: str = Field(min_length=1)
    """Pattern of tensor names, with * as a wildcard, such as "*.embeddings.*"; `inspect` lists the names of a trained
    model."""
    learning_rate_scale: float = Field(1.0, ge=0)
    """Factor on the phase's learning rate; 0 leaves the tensors unchanged."""
    weight_decay: float | None = Field(None, ge=0)
    """Replaces the optimizer's weight decay, also for biases and layer norms; if omitted, the usual decay applies."""


class LambConfig(Section):
    """LAMB (You et al. 2020) as in NVIDIA's BERT: layer-wise trust ratios for very large batches."""

    kind: Literal["lamb"] = "lamb"
    """Names this optimizer."""
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    """Decay rates of the averages of the gradient and of its square, per update."""
    eps: float = Field(1e-6, gt=0)
    """Added to the square root of the second moment."""
    weight_decay: float = Field(0.01, ge=0)
    """Multiple of the weights added to the update; biases and layer norms do not decay."""
    bias_correction: bool = True
    """Whether to divide the moments by 1 - beta^step; Intel's and Google's variants do not."""
    trust_ratio_on_undecayed: bool = False
    """Whether tensors without weight decay are also scaled by their trust ratio (NVIDIA calls this NVLAMB)."""
    max_trust_ratio: float = Field(0.0, ge=0)
    """Upper bound of the trust ratio; 0: unbounded. You et al. 2020 bound the norm of the weights (their φ) without
    giving the bound; NVIDIA uses none."""
    grad_averaging: bool = True
    """Whether the gradient is multiplied by 1 - beta before it is added to the first moment, as in Adam; if false, it
    is added unscaled, an option of apex."""
    max_grad_norm: float = Field(1.0, ge=0)
    """Maximum global gradient norm, to which larger gradients are scaled down; 0 disables clipping."""
    clip_before_reduction: bool = False
    """Whether each rank clips its own part of the gradient, to max_grad_norm divided by the number of ranks, before the
    all-reduce, as MLCommons' reference does; training then depends on the number of ranks. If false, the sum is
    clipped."""
    groups: tuple[GroupConfig, ...] = ()
    """Tensors with their own learning rate or weight decay, each group selected by a pattern."""

    @model_validator(mode="after")
    def _something_to_clip(self) -> LambConfig:
        if self.clip_before_reduction and not self.max_grad_norm:
            raise ValueError(
                "clip_before_reduction sets where gradients are clipped, but max_grad_norm 0 turns clipping off; set "
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
    """Added to the square root of the second moment; 1e-6 as in Google's BERT (optimization.py), while torch's default
    is 1e-8."""
    weight_decay: float = Field(0.01, ge=0)
    """Share of the weights subtracted per update and unit of learning rate; biases and layer norms do not decay."""
    max_grad_norm: float = Field(1.0, ge=0)
    """Maximum global gradient norm, to which larger gradients are scaled down; 0 disables clipping."""
    groups: tuple[GroupConfig, ...] = ()
    """Tensors with their own learning rate or weight decay, each group selected by a pattern."""


class MuonConfig(Section):
    """Muon (Jordan 2024) for the matrices of the layers, AdamW for embeddings, heads, biases and layer norms.

    Uses AdamW's learning rate: updates of matrices are scaled to the size of AdamW's (Liu et al. 2025). Where a tensor
    stacks several matrices, such as ModernBERT's queries, keys and values, each gets an update of its own.
    """

    kind: Literal["muon"] = "muon"
    """Names this optimizer."""
    products: Literal["auto", "fp32", "bf16"] = "auto"
    """Precision of the products that make an update orthogonal. `auto`: bf16 on GPUs, as in Jordan's code, and on CPUs
    where the training computes in bf16, too; else fp32."""
    momentum: Beta = 0.95
    """Decay rate of the average of a matrix's gradient, per update (Nesterov momentum)."""
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    """Decay rates of AdamW's averages of the gradient and of its square, per update."""
    eps: float = Field(1e-6, gt=0)
    """Added to the square root of AdamW's second moment."""
    weight_decay: float = Field(0.1, ge=0)
    """Share of the weights subtracted per update and unit of learning rate; biases and layer norms do not decay."""
    max_grad_norm: float = Field(1.0, ge=0)
    """Maximum global gradient norm, to which larger gradients are scaled down; 0 disables clipping."""
    groups: tuple[GroupConfig, ...] = ()
    """Tensors with their own learning rate or weight decay, each group selected by a pattern."""


class OptimizerPlugin(Plugin, Section):
    """The base of optimizers in other packages (entry points `bertwright.optimizers`).

    The fields of a subclass are its recipe keys. Modules with such a class need not import torch before `build`.
    """

    group: ClassVar[str] = "bertwright.optimizers"
    moments: ClassVar[int] = 2
    """State tensors that it keeps for each parameter, for the forecast of memory."""

    weight_decay: float = Field(0.01, ge=0)
    """Weight decay of the parameter groups; biases and layer norms do not decay."""
    max_grad_norm: float = Field(1.0, ge=0)
    """Maximum global gradient norm, to which larger gradients are scaled down; 0 disables clipping."""
    groups: tuple[GroupConfig, ...] = ()
    """Tensors with their own learning rate or weight decay, each group selected by a pattern."""

    @abstractmethod
    def build(self, groups: list[dict[str, Any]], shards: Any) -> Any:
        """The `torch.optim.Optimizer` for these parameter groups, each with `params` and `weight_decay`.

        Its state for a parameter is `step`, the number of updates, and tensors of the parameter's shape. The learning
        rate, `group["lr"]`, is set before each update; gradients are clipped by the engine. `shards`: None, or the
        collective operations (`optim.shards.Shards`) for tensors that are this rank's parts (`train.engine = "fsdp"`),
        which an optimizer that treats each element by itself does not need.
        """


OptimConfig = Annotated[LambConfig | AdamWConfig | MuonConfig | OptimizerPlugin, PLUGINS]
"""The optimizer."""

_SAME_MOMENTS = {"adamw", "lamb"}
"""Optimizers that have the same moments, so that each can continue those of another."""


def other_moments(own: str, theirs: str) -> str:
    """Return what is wrong with a checkpoint that has the moments of the optimizer `theirs`, to start from with the
    optimizer `own`, as the end of a sentence; "" if nothing is."""
    if own == theirs or {own, theirs} <= _SAME_MOMENTS:
        return ""
    return (
        f"has the moments of optim.kind={theirs}, which {own} cannot continue; set optim.kind={theirs}, or give the "
        "finished train folder of that training, which has no moments"
    )


ScheduleConfig = Annotated[
    LinearSchedule
    | PolySchedule
    | PolyNvidiaSchedule
    | ConstantSchedule
    | CosineSchedule
    | WsdSchedule
    | SchedulePlugin,
    PLUGINS,
    BeforeValidator(by_kind),
]
"""The learning-rate schedule after the warm-up."""
