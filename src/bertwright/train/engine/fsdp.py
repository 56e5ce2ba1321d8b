"""Each rank holds a shard of every tensor: torch's fully_shard, layer by layer.

The optimizer updates this rank's shards as plain tensors. Operations on complete tensors involve all ranks: the norms
of LAMB are all-reduced, the matrices of Muon are gathered.

Ranks exchange parts of tensors as torch does by itself, but each exchange is counted: the watchdog knows a rank that
hangs by the others having begun more collectives (`watchdog.Watchdog.sums`). Gradients are optionally rounded to 16
bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn import Parameter

from bertwright.model.model import Model
from bertwright.optim.build import moment_names, optimizer_of
from bertwright.optim.config import OptimConfig
from bertwright.optim.groups import set_rate
from bertwright.optim.norms import clip_global_norm
from bertwright.optim.state import check_state, load_named_state, named_state, reset_steps
from bertwright.train.engine.chosen_rows import ChosenRows, Rows
from bertwright.train.engine.config import FsdpConfig
from bertwright.train.engine.ddp import LOW
from bertwright.train.engine.partition import Share, rows
from bertwright.train.ranks.process_group import open_group
from bertwright.train.ranks.ranks import Ranks


class FullySharded:
    """The engine of several ranks that shard everything; see `Engine`."""

    has_full_weights = False
    """As `Engine.whole`."""

    def __init__(self, model: Model, optim: OptimConfig, ranks: Ranks, config: FsdpConfig) -> None:
        self._optim, self._ranks, self._moments = optim, ranks, moment_names(optim, model)
        device = next(model.parameters()).device.type
        open_group(gpu=device == "cuda")
        mesh = init_device_mesh(device, (ranks.world,))
        for layer in model.encoder.layers:
            fully_shard(layer, mesh=mesh)
        # Parameters outside the layers are resharded after a forward pass, too: scoring has no backward pass to do it.
        self._root, self._model = fully_shard(model, mesh=mesh, reshard_after_forward=True), model
        for module in model.modules():
            if isinstance(module, FSDPModule):
                # Losses use global counts, so gradients are summed instead of averaged, and gloo has no scaled sum.
                module.set_gradient_divide_factor(1.0)
                module.set_force_sum_reduction_for_comms(True)
                module.set_custom_all_gather(AllGather(ranks))  # type: ignore[arg-type]
                low = LOW.get(config.reduction)
                module.set_custom_reduce_scatter(ReduceScatter(ranks, low))  # type: ignore[arg-type]
        self._sharded = {name: p for name, p in model.named_parameters() if p.requires_grad}
        # The same memory, so that updating a shard updates the network.
        self._parts = {name: Parameter(_part(p.detach())) for name, p in self._sharded.items()}
        self._optimizer = optimizer_of(optim, self._parts, model.config.fused, self)
        self._chosen: ChosenRows | None = None
        self._share = Share({n: p.numel() for n, p in self._sharded.items()}, ranks.world, ranks.rank)

    def root(self, loss: Tensor, last: bool = True) -> Tensor:
        """As `Engine.root`: the loss itself, a scalar."""
        self._root.set_requires_gradient_sync(last)
        return loss

    def reduce(self, loss_scale: float = 1.0) -> Tensor:
        """As `Engine.reduce`, a scalar; the last backward pass has already summed the gradients over the ranks."""
        gradients = []
        for name, part in self._parts.items():
            gradient = self._sharded[name].grad
            part.grad = torch.zeros_like(part) if gradient is None else _part(gradient)
            gradients.append(part.grad)
        gradients = self._chosen.gradients() if self._chosen else gradients
        return clip_global_norm(gradients, self._optim.max_grad_norm, loss_scale, self.add)

    def update(self, learning_rate: float) -> None:
        """As `Engine.update`."""
        set_rate(self._optimizer, learning_rate)
        (self._chosen or self._optimizer).step()

    def restart_steps(self) -> None:
        """As `Engine.restart_steps`."""
        reset_steps(self._optimizer)

    def train_rows(self, rows: Rows | None) -> None:
        """As `Engine.train_rows`; everything still gets gradients, because ranks exchange those of entire layers."""
        moments = self._state()
        if self._chosen:
            self._chosen.release()
            self._chosen = None
        if rows is not None:
            self._chosen = ChosenRows(
                self._optimizer, self._parts, {name: self._own(name, rows[name]) for name in rows}
            )
        self._load_state(moments)

    def _own(self, name: str, index_N: Tensor) -> Tensor:
        """Return those of the rows [N] that this rank has, by their numbers in its part."""
        own = rows(len(self._sharded[name]), self._ranks.world, self._ranks.rank)
        index = index_N.cpu()
        kept: Tensor = index[(index >= own.start) & (index < own.stop)] - own.start
        return kept

    def _state(self) -> dict[str, Tensor]:
        """Return the complete state of this rank's parts, of any shapes by name."""
        return self._chosen.state(self._moments) if self._chosen else named_state(self._optimizer, self._parts)

    def _load_state(self, moments: Mapping[str, Tensor]) -> None:
        """Restore what `_state` returned."""
        if self._chosen:
            self._chosen.load(moments, self._moments)
        else:
            load_named_state(self._optimizer, self._parts, moments, self._moments)

    def gather(self, own: bool = False) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """As `Engine.gather`; everything is temporarily complete on every rank, with `own` one tensor after another."""
        weights, moments = dict[str, Tensor](), dict[str, Tensor]()
        for name, tensor in self._model.state_dict().items():
            whole = _whole(tensor)
            weights |= {name: whole} if not own or self._share.has(name) else {}
        for key, tensor in self._state().items():
            name = key.partition(".")[2]
            whole = self.whole_of(tensor, self._parts[name]) if name else tensor
            moments |= {key: whole} if not own or self._share.has(name) else {}
        return weights, moments

    def load(self, moments: Mapping[str, Tensor], weights: Mapping[str, Tensor] | None = None) -> None:
        """As `Engine.load`."""
        check_state(self._sharded, moments, self._moments)
        own = self._model.state_dict() if weights else {}
        for name, tensor in (weights or {}).items():
            _part(own[name]).copy_(self._rows(tensor))
        # Sliced in place, so that of tensors backed by a file only this rank's rows are read or sent to a GPU.
        parts = {key: tensor if key == "step" else self._rows(tensor) for key, tensor in moments.items()}
        self._load_state(parts)

    def add(self, numbers: Tensor) -> Tensor:
        """As `Shards.add`: of any shape."""
        self._ranks.all_reduce([numbers])
        return numbers

    def whole_of(self, part: Tensor, parameter: Tensor) -> Tensor:
        """As `Shards.whole_of`: tensors of any shape."""
        like = self._sharded[next(name for name, own in self._parts.items() if own is parameter)]
        assert isinstance(like, DTensor)
        whole = DTensor.from_local(
            part, like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride()
        )
        return _whole(whole)

    def part_of(self, whole: Tensor, parameter: Tensor) -> Tensor:
        """As `Shards.part_of`: tensors of any shape."""
        return self._rows(whole)

    def _rows(self, whole: Tensor) -> Tensor:
        """Return this rank's rows of a complete tensor of any shape, in the same memory, as fully_shard splits it."""
        return whole[rows(len(whole), self._ranks.world, self._ranks.rank)]


def _part(tensor: Tensor) -> Tensor:
    """Return this rank's shard, in the same memory."""
    assert isinstance(tensor, DTensor)
    return tensor.to_local()


def _whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@dataclass(frozen=True)
class AllGather:
    """Makes a layer complete on every rank (see torch's `FSDPModule.set_custom_all_gather`)."""

    ranks: Ranks

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return memory for what is received: of any shape, namely `size`."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: dist.ProcessGroup, async_op: bool = False
    ) -> Any:
        """Gather the flat parts of all ranks, in their order."""
        self.ranks.count()
        gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # the newer name first
        return gather(output_tensor, input_tensor, group=group, async_op=async_op)


@dataclass(frozen=True)
class ReduceScatter:
    """Sums gradients over the ranks (see torch's `FSDPModule.set_custom_reduce_scatter`).

    For 16 bits, torch's own `reduce_dtype` is not used, because it also accumulates the gradients of micro-batches in
    16 bits.
    """

    ranks: Ranks
    low: torch.dtype | None
    """The dtype to which gradients are rounded for sending; None: they are sent unchanged."""

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return memory for what is sent: of any shape, namely `size`."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: Tensor,
        input_tensor: Tensor,
        group: dist.ProcessGroup,
        op: Any,
        async_op: bool = False,
    ) -> Any:
        """Give each rank the sums of its own part, all flat."""
        self.ranks.count()
        scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor  # the newer name first
        if self.low is None:
            return scatter(output_tensor, input_tensor, op=op, group=group, async_op=async_op)
        summed = torch.empty_like(output_tensor, dtype=self.low)
        scatter(summed, input_tensor.to(self.low), op=op, group=group)
        output_tensor.copy_(summed)
        return None
