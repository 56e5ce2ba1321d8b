"""DeepSpeed's ZeRO by the package itself (the extra `deepspeed`): it holds parts, sums gradients, clips and updates.

Its configuration is made from the recipe, so every value stands in one place. DeepSpeed averages gradients over the
ranks; losses are over global counts, so the loss is multiplied by the number of ranks first. All tensors of a group are
one vector to it, cut into equal parts, so an optimizer that looks at whole tensors is refused.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from bertwright.core.distributed import rank_here
from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.model.model import Model
from bertwright.optim.build import build_optimizer, moment_names
from bertwright.optim.config import AdamWConfig, OptimConfig
from bertwright.optim.groups import set_rate
from bertwright.optim.state import check_state
from bertwright.train.engine.alone import open_group
from bertwright.train.engine.config import DeepSpeedConfig
from bertwright.train.engine.partition import Share
from bertwright.train.ranks import Ranks


class DeepSpeed:
    """The engine that hands its work to DeepSpeed; see `Engine`."""

    whole = False
    """As `Engine.whole`."""

    def __init__(self, model: Model, optim: OptimConfig, ranks: Ranks, config: DeepSpeedConfig) -> None:
        if not isinstance(optim, AdamWConfig):
            raise RecipeError(
                f"train.engine = deepspeed cuts tensors anywhere, and optim.kind = {optim.kind} works on whole ones. "
                "Set train.engine=zero, which keeps them whole, or optim.kind=adamw."
            )
        device = next(model.parameters()).device
        self._package, self._ranks, self._moments = _package(device), ranks, moment_names(optim, model)
        self._shapes = {name: torch.empty(p.shape, device="meta") for name, p in model.named_parameters()}
        self._buffers = {name: tensor for name, tensor in model.state_dict().items() if name not in self._shapes}
        open_group(gpu=device.type == "cuda")
        os.environ.setdefault("LOCAL_RANK", str(rank_here()))  # which DeepSpeed asks for, whoever started the ranks
        self._engine, self._zero, _, _ = self._package.initialize(
            model=model,
            optimizer=build_optimizer(optim, model),
            config=deepspeed_settings(config, optim.max_grad_norm, ranks.world),
            dist_init_required=False,
        )
        self._named = dict(model.named_parameters())
        self._share = Share({name: shape.numel() for name, shape in self._shapes.items()}, ranks.world, ranks.rank)
        self._begin_state(0)
        # Not told by the count of updates, which begins anew at a hand-over.
        self._moved = False

    def backward(self, loss: Tensor, last: bool = True) -> None:
        """As `Engine.backward`; the loss is a scalar."""
        self._engine.set_gradient_accumulation_boundary(last)
        self._engine.backward(loss * self._ranks.world, scale_wrt_gas=False)

    def reduce(self, loss_scale: float = 1.0) -> Tensor:
        """As `Engine.reduce`, a scalar; the clipping is DeepSpeed's, in `update`, by the norm + 1e-6."""
        assert loss_scale == 1, "fp16 is refused with this engine (contradictions.in_parts)"
        norm = torch.as_tensor(self._zero.scaled_global_norm()).double()
        # DeepSpeed says -1 of a norm that is not finite.
        return torch.where(norm < 0, torch.nan, norm)

    def update(self, learning_rate: float) -> None:
        """As `Engine.update`."""
        set_rate(self._zero, learning_rate)
        self._engine.step()
        self._moved = True

    def restart_steps(self) -> None:
        """As `Engine.restart_steps`."""
        for state in self._states():
            state["step"].zero_()

    def gather(self, own: bool = False) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """As `Engine.gather`; everything is whole on every rank, for as long as it is asked for, and with `own` one
        tensor after another."""
        parts, weights = self._package.utils, {} if own and not self._ranks.first else dict(self._buffers)
        for name, p in self._named.items():
            whole = parts.safe_get_full_fp32_param(p).view(self._shapes[name].shape)
            weights |= {name: whole} if not own or self._share.has(name) else {}
        step = int(next(iter(self._states()))["step"])
        moments = {"step": torch.tensor(step, dtype=torch.int64)} if not own or self._ranks.first else {}
        for name, kept in self._moments.items() if self._moved else ():
            for moment in kept:
                whole = parts.safe_get_full_optimizer_state(self._named[name], moment)
                if not own or self._share.has(name):
                    moments[f"{moment}.{name}"] = whole.view(self._shapes[name].shape)
        return weights, moments

    def load(self, moments: Mapping[str, Tensor], weights: Mapping[str, Tensor] | None = None) -> None:
        """As `Engine.load`."""
        check_state(self._shapes, moments, self._moments)
        parts = self._package.utils
        for name, tensor in (weights or {}).items():
            if name in self._named:
                # What computes and what the optimizer moves are two copies, also in float32.
                self._named[name].data.copy_(tensor)
                parts.safe_set_full_fp32_param(self._named[name], tensor)
        self._begin_state(int(moments["step"]))
        self._moved = len(moments) > 1
        for key, tensor in moments.items():
            moment, _, name = key.partition(".")
            if name:
                parts.safe_set_full_optimizer_state(self._named[name], tensor, moment)

    def _begin_state(self, step: int) -> None:
        """Moments of 0 after so many updates, for every part."""
        # DeepSpeed would learn of them in the first update, and of those of the first group alone.
        kept = next(iter(self._moments.values()))
        for part in (part for group in self._zero.optimizer.param_groups for part in group["params"]):
            moments = {moment: torch.zeros_like(part) for moment in kept}
            self._zero.optimizer.state[part] = {"step": torch.tensor(float(step), device=part.device), **moments}
        self._zero._hp_optimizer_states_linked = False
        self._zero._lazy_init_hp_params_optimizer_state()

    def _states(self) -> list[dict[str, Tensor]]:
        return list(self._zero.optimizer.state.values())


def deepspeed_settings(config: DeepSpeedConfig, max_grad_norm: float, ranks: int) -> dict[str, Any]:
    """What DeepSpeed is told, as its `ds_config.json` would say it."""
    return {
        # Micro-batches are counted here, and this engine says which is the last one.
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "train_batch_size": ranks,
        "zero_optimization": {"stage": config.stage},
        "gradient_clipping": max_grad_norm,
        "zero_allow_untested_optimizer": True,
        "steps_per_print": 2**31,
    }


def _package(device: torch.device) -> Any:
    if device.type == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    try:
        return importlib.import_module("deepspeed")
    except ImportError as error:
        raise MissingExtraError(
            "train.engine = deepspeed needs the package deepspeed, which is not installed: pip install "
            "--no-build-isolation 'bertwright[deepspeed]'."
        ) from error
