"""Batches as tensors: conversion of drawn batches to the network's device, and batches built from given sequences."""

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
    """Convert a drawn batch to tensors on `device`; on the CPU they share its memory."""
    device = torch.device(device)
    return to_device(host_tensors(batch, device), device)


def host_tensors(batch: MicroBatch, device: torch.device) -> PackedBatch:
    """Convert a batch to tensors in host memory, ready for the transfer to `device`: copies in pinned memory for a GPU,
    otherwise tensors that share the batch's memory."""
    if device.type != "cuda":
        return batch.map(torch.from_numpy)
    # Copies to a GPU are asynchronous only from pinned memory. Pinned memory belongs to a GPU, and a new thread starts
    # with the first GPU as its current device.
    with torch.cuda.device(device):
        return batch.map(_pinned)


def to_device(batch: PackedBatch, device: torch.device) -> PackedBatch:
    """Move a batch of `host_tensors` to `device`; the host does not wait for the copies to a GPU."""
    return batch.map(partial(Tensor.to, device=device, non_blocking=device.type == "cuda"))


def _pinned(array: NDArray[Any]) -> Tensor:
    return torch.from_numpy(array).pin_memory()


def packed_sequences(sequences: Sequence[tuple[Sequence[int], Sequence[int]]], mask: int) -> PackedBatch:
    """Pack sequences end to end on the CPU. Each is given as the ids of its segments A and B (B may be empty), which
    are used unchanged.

    Every `mask` id is a prediction, in order; its label is `mask` itself, because the hidden token is unknown.
    """
    lengths = [len(a) + len(b) for a, b in sequences]
    token_ids = torch.tensor([i for a, b in sequences for i in (*a, *b)])
    places = (token_ids == mask).nonzero().flatten()
    # Kernels for variable-length sequences require int32 `cu_seqlens`.
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
