"""How fully_shard's ranks exchange parts of tensors: as torch does by itself, counted for the watchdog, and optionally
with gradients rounded to 16 bits.

The watchdog knows a rank that hangs by the others having begun more collectives (`watchdog.Watchdog.sums`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

from bertwright.train.ranks import Ranks


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
