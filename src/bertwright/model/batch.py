"""Batches in tensors: those that were drawn, on the network's device, and those made of sequences at hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from bertwright.examples.batch import Batch, MicroBatch

PackedBatch = Batch[Tensor]
"""A batch as the network reads it; all tensors are on one device."""


def packed(batch: MicroBatch, device: torch.device | str = "cpu") -> PackedBatch:
    """A batch as it was drawn, in tensors on `device`; on the CPU they share its memory."""
    device = torch.device(device)
    return to_device(host_tensors(batch, device), device)


def host_tensors(batch: MicroBatch, device: torch.device) -> PackedBatch:
    """A batch in tensors of the host's memory, from where it goes to `device`: for a GPU copies in pinned memory, else
    they share the batch's own."""
    if device.type != "cuda":
        return batch.map(torch.from_numpy)
    # Only from pinned memory is a copy to a GPU made while the host goes on. It belongs to a GPU, and a thread begins
    # with the first one.
    with torch.cuda.device(device):
        return batch.map(_pinned)


def to_device(batch: PackedBatch, device: torch.device) -> PackedBatch:
    """A batch of `host_tensors` on `device`; the host does not wait for the copies to a GPU."""
    return batch.map(partial(Tensor.to, device=device, non_blocking=device.type == "cuda"))


def _pinned(array: NDArray[Any]) -> Tensor:
    return torch.from_numpy(array).pin_memory()


def packed_sequences(sequences: Sequence[tuple[Sequence[int], Sequence[int]]], mask: int) -> PackedBatch:
    """Sequences laid end to end on the CPU, each given as the ids of segments A and B (B may be empty), as they are.

    Every `mask` is a prediction, in order; its label is `mask` itself, because what it hides is not known.
    """
    lengths = [len(a) + len(b) for a, b in sequences]
    token_ids = torch.tensor([i for a, b in sequences for i in (*a, *b)])
    places = (token_ids == mask).nonzero().flatten()
    # int32 is what kernels for sequences of different lengths ask of `cu_seqlens`.
    bounds = torch.tensor([0, *lengths]).cumsum(0).int()
    return PackedBatch(
        token_ids=token_ids,
        position_ids=torch.cat([torch.arange(n) for n in lengths]),
        segment_ids=torch.tensor([s for a, b in sequences for s in [0] * len(a) + [1] * len(b)]),
        cu_seqlens=bounds,
        cu_rows=bounds,
        max_row=max(lengths),
        prediction_positions=places,
        labels=token_ids[places],
        weights=torch.ones(len(places)),
        sequence_labels=torch.zeros(len(sequences), dtype=torch.int64),
        sequence_weights=torch.ones(len(sequences)),
    )
