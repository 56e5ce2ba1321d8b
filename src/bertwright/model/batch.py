"""The packed batch: sequences laid end to end, with no padding between them.

Names carry shapes: B sequences, T tokens of all sequences together, P predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class PackedBatch:
    """What the network reads in one micro-batch; all tensors are on one device.

    Sequence b is the tokens `cu_seqlens[b] : cu_seqlens[b + 1]`. A batch of fixed shape keeps the contract with
    sequences and predictions that count nothing: its last tokens form one padding sequence, unused entries of
    `cu_seqlens` equal T (sequences of length 0), unused predictions have position 0, and both have weight 0. A batch
    may be empty (T = B = P = 0); its losses and gradients are 0.
    """

    token_ids: Tensor
    """[T] int64, rows of the token embedding."""
    position_ids: Tensor
    """[T] int64, 0 at each sequence's first token."""
    segment_ids: Tensor
    """[T] int64, 0 for sentence A, 1 for sentence B."""
    cu_seqlens: Tensor
    """[B+1] int32, cumulative sequence lengths from 0 to T."""
    cu_rows: Tensor
    """[R+1] int32, where the rows begin and end that a padded layout gives the tokens: each holds whole sequences, one
    or, in a batch packed into rows, several."""
    max_row: int
    """Length of the longest row or more, the padding sequence included."""
    prediction_positions: Tensor
    """[P] int64, indices into [T] of the masked tokens."""
    labels: Tensor
    """[P] int64, the tokens that were there."""
    weights: Tensor
    """[P] float32, 1 for a prediction that counts, 0 for an unused one."""
    next_sentence_labels: Tensor
    """[B] int64, 0 where B follows A, 1 where B is random."""
    sequence_weights: Tensor
    """[B] float32, 1 for a sequence that counts, 0 for padding."""

    def to(self, device: torch.device | str) -> PackedBatch:
        """The same batch on `device`, copied without waiting where its memory is pinned."""
        moved: dict[str, Any] = {
            field.name: value.to(device, non_blocking=True)
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), Tensor)
        }
        return replace(self, **moved)


_DTYPES = {"cu_seqlens": np.int32, "cu_rows": np.int32, "weights": np.float32, "sequence_weights": np.float32}


def packed(arrays: Any) -> PackedBatch:
    """A batch on the CPU, copied from numpy arrays that are `arrays`' attributes of the same names.

    `max_row` is measured, so `arrays` need not have it.
    """
    tensors: dict[str, Any] = {
        field.name: torch.from_numpy(np.array(getattr(arrays, field.name), _DTYPES.get(field.name, np.int64)))
        for field in fields(PackedBatch)
        if field.name != "max_row"
    }
    return PackedBatch(max_row=int(np.diff(arrays.cu_rows).max(initial=0)), **tensors)


def packed_sequences(sequences: Sequence[tuple[Sequence[int], Sequence[int]]], mask: int) -> PackedBatch:
    """Sequences laid end to end on the CPU, each given as the ids of segments A and B (B may be empty), as they are.

    Every `mask` is a prediction, in order; its label is `mask` itself, because what it hides is not known.
    """
    lengths = [len(a) + len(b) for a, b in sequences]
    token_ids = torch.tensor([i for a, b in sequences for i in (*a, *b)])
    places = (token_ids == mask).nonzero().flatten()
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
        next_sentence_labels=torch.zeros(len(sequences), dtype=torch.int64),
        sequence_weights=torch.ones(len(sequences)),
    )
