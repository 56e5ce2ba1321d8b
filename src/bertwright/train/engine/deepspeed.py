"""DeepSpeed's ZeRO, run by the DeepSpeed package (the extra `deepspeed`): it shards, reduces gradients, clips and
updates.

Its configuration is derived from the recipe (`ds_config`), so every value is set in one place. DeepSpeed averages
gradients over the ranks, whereas losses use global counts, so the number of ranks is part of the scale that DeepSpeed
divides by. It splits tensors at arbitrary positions, so optimizers that need complete tensors are refused.

The network is called directly instead of through DeepSpeed's wrapper module, which would disable autocast. That wrapper
also signals the optimizer that a forward pass begins, and stage 3 accumulates micro-batches only with that signal:
here a hook sends it. The package is adapted to a process that trains more than once and is watched.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from bertwright.core.distributed import rank_here
from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.model.model import Model
from bertwright.optim.build import build_optimizer, moment_names
from bertwright.optim.config import AdamWConfig, OptimConfig
from bertwright.optim.groups import set_rate
from bertwright.optim.state import check_state
from bertwright.train.engine.chosen_rows import Rows
from bertwright.train.engine.config import NO_ROWS, DeepSpeedConfig
from bertwright.train.engine.ds_config import Step, ds_config
from bertwright.train.engine.partition import Share
from bertwright.train.ranks.process_group import open_group
from bertwright.train.ranks.ranks import Ranks


class DeepSpeed:
    """The engine that delegates its work to DeepSpeed; see `Engine`."""

    has_full_weights = False
    """As `Engine.whole`."""

    def __init__(self, model: Model, optim: OptimConfig, ranks: Ranks, config: DeepSpeedConfig, step: Step) -> None:
        if not isinstance(optim, AdamWConfig):
            raise RecipeError(
                f"train.engine = deepspeed splits tensors at any element, but optim.kind = {optim.kind} needs whole "
                "tensors. Set train.engine=zero, which keeps them whole, or optim.kind=adamw."
            )
        device = next(model.parameters()).device
        self._package, self._ranks, self._moments = open_package(device, step), ranks, moment_names(optim, model)
        self._cuts_weights = config.stage == 3
        self._shapes = {name: torch.empty(p.shape, device="meta") for name, p in model.named_parameters()}
        self._buffers = {name: tensor for name, tensor in model.state_dict().items() if name not in self._shapes}
        open_group(gpu=device.type == "cuda")
        os.environ.setdefault("LOCAL_RANK", str(rank_here()))  # DeepSpeed requires it, however the ranks were started
        self._engine, self._zero, _, _ = self._package.initialize(
            model=model,
            optimizer=build_optimizer(optim, model, model.config.fused),
            config=ds_config(config, optim, step, ranks.world),
            dist_init_required=False,
        )
        count_collectives(self._package, ranks)
        model.register_forward_pre_hook(lambda *_: self._zero.clear_backward_seen_flag())
        self._zero.custom_loss_scaler = True
        self._named = dict(model.named_parameters())
        self._share = Share({name: shape.numel() for name, shape in self._shapes.items()}, ranks.world, ranks.rank)
        self._begin_state(0)
        # A separate flag, because the update count restarts at 0 at a hand-over.
        self._moved = False
        self._reduced = False
        """Whether there are gradients of a step that has not been updated yet."""

    def root(self, loss: Tensor, last: bool = True) -> _Root:
        """As `Engine.root`, for a scalar; DeepSpeed runs the backward pass."""
        if self._reduced:
            self._drop_gradients()
        self._zero.external_loss_scale = 1.0  # the loss is already scaled
        self._engine.set_gradient_accumulation_boundary(last)
        return _Root(self._engine, loss)

    def reduce(self, loss_scale: float = 1.0) -> Tensor:
        """As `Engine.reduce`, a scalar; DeepSpeed undoes the scale in `update`, and clips gradients there by the norm +
        1e-6."""
        scale = loss_scale / self._ranks.world
        self._zero.external_loss_scale = scale
        parts = (part.double() for group in self._zero.averaged_gradients.values() for part in group or ())
        square = torch.stack([part.square().sum() for part in parts]).sum()
        self._ranks.all_reduce([square])
        self._reduced = True
        return square.sqrt() / scale

    def update(self, learning_rate: float) -> None:
        """As `Engine.update`."""
        set_rate(self._zero, learning_rate)
        self._engine.step()
        self._moved, self._reduced = True, False

    def restart_steps(self) -> None:
        """As `Engine.restart_steps`."""
        for state in self._states():
            state["step"].zero_()

    def train_rows(self, rows: Rows | None) -> None:
        """As `Engine.train_rows`: it cannot."""
        if rows is not None:
            raise RecipeError(NO_ROWS)

    def gather(self, own: bool = False) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """As `Engine.gather`; everything is temporarily complete on every rank, with `own` one tensor after another."""
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
        for name, tensor in (weights or {}).items():
            if name in self._named:
                self._load_weight(self._named[name], tensor)
        self._begin_state(int(moments["step"]))
        self._moved = len(moments) > 1
        for key, tensor in moments.items():
            moment, _, name = key.partition(".")
            if name:
                self._load_moment(self._named[name], tensor, moment)

    def _load_weight(self, parameter: nn.Parameter, tensor: Tensor) -> None:
        # The weights that compute and those that the optimizer updates are two copies.
        parts = self._package.utils
        if self._cuts_weights:
            with self._package.zero.GatheredParameters([parameter], modifier_rank=0):
                parameter.data.copy_(tensor)
            parts.safe_set_local_fp32_param(parameter, self._cut(tensor, parameter))
        else:
            parameter.data.copy_(tensor)
            parts.safe_set_full_fp32_param(parameter, tensor)

    def _load_moment(self, parameter: nn.Parameter, tensor: Tensor, moment: str) -> None:
        parts = self._package.utils
        if self._cuts_weights:
            parts.safe_set_local_optimizer_state(parameter, self._cut(tensor, parameter), moment)
        else:
            parts.safe_set_full_optimizer_state(parameter, tensor, moment)

    def _cut(self, whole: Tensor, parameter: Any) -> Tensor:
        """Return this rank's part in stage 3: equal parts, the last one padded with 0."""
        size = parameter.ds_tensor.numel()
        filled = pad(whole.flatten(), (0, size * self._ranks.world - whole.numel()))
        return filled[size * self._ranks.rank :][:size]

    def _drop_gradients(self) -> None:
        """Drop the gradients of a step whose update is dropped, as DeepSpeed does when it detects an overflow
        itself."""
        self._zero.zero_grad()
        self._zero.averaged_gradients = {}
        self._reduced = False

    def _begin_state(self, step: int) -> None:
        """Create zero moments, with an update count of `step`, for every part."""
        # DeepSpeed would create them only in the first update, and only those of the first group.
        kept, zero = next(iter(self._moments.values())), self._zero
        for part in zero.fp32_partitioned_groups_flat if self._cuts_weights else zero.single_partition_of_fp32_groups:
            moments = {moment: torch.zeros_like(part) for moment in kept}
            zero.optimizer.state[part] = {"step": torch.tensor(float(step), device=part.device), **moments}
        if not self._cuts_weights:
            zero._hp_optimizer_states_linked = False
            zero._lazy_init_hp_params_optimizer_state()

    def _states(self) -> list[dict[str, Tensor]]:
        return list(self._zero.optimizer.state.values())


@dataclass(frozen=True)
class _Root:
    """A loss whose backward pass DeepSpeed runs, because it tracks what it has to send."""

    engine: Any
    loss: Tensor

    def backward(self) -> None:
        self.engine.backward(self.loss, scale_wrt_gas=False)


_COLLECTIVES = (
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_reduce",
    "all_reduce_coalesced",
    "barrier",
    "broadcast",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
)
"""What its stages send, as methods of its transport."""


def open_package(device: torch.device, step: Step) -> Any:
    """Return the package, set to compute on the device.

    Raises `MissingExtraError` if it is not installed, `RecipeError` if it lacks float16 for a step that uses it.
    """
    if device.type == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    try:
        package = importlib.import_module("deepspeed")
    except ImportError as error:
        raise MissingExtraError(
            "train.engine = deepspeed needs the package deepspeed, which is not installed: pip install "
            "--no-build-isolation 'bertwright[deepspeed]'."
        ) from error
    accelerator = importlib.import_module("deepspeed.accelerator").get_accelerator()
    if step.fp16 and not accelerator.is_fp16_supported():
        raise RecipeError(
            "train.precision = fp16 with train.engine = deepspeed, but DeepSpeed has no float16 on this processor. "
            "Set train.precision=fp32, or train.engine=zero, which computes in float16 slowly "
            "(train.precision.allow_slow=true)."
        )
    if device.type == "cpu":
        # Disable its shared-memory all-reduce: the first start compiles it for minutes, and waits forever for a
        # compiler that was killed. gloo reduces instead, as for the other engines.
        package.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    # It keeps its groups in variables, and would use those of an earlier training of this process, which are closed.
    package.comm.comm.cdb = None
    package.utils.groups._WORLD_GROUP = None
    return package


def count_collectives(package: Any, ranks: Ranks) -> None:
    """Count what the package sends from now on, as `Ranks.count` says: the watchdog knows a rank that hangs by it."""
    transport = package.comm.comm.cdb
    for name in _COLLECTIVES:
        setattr(transport, name, _count_calls(getattr(transport, name), ranks))


def _count_calls(collective: Callable[..., Any], ranks: Ranks) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        ranks.count()
        return collective(*arguments, **options)

    return call
