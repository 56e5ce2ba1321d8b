"""Batches of which only the sequences and rows matter."""

from itertools import accumulate

import torch
from torch import Tensor

from bertwright.examples.batch import Batch


def sequences(lengths: list[int], rows: list[int] | None = None, slack: int = 0) -> Batch[Tensor]:
    """A batch of sequences of these lengths, in rows of these lengths (default: one each), and `slack` more room."""
    rows = lengths if rows is None else rows
    nothing = torch.zeros(0)
    return Batch(
        token_ids=torch.zeros(sum(lengths), dtype=torch.int64),
        position_ids=nothing,
        segment_ids=nothing,
        cu_seqlens=torch.tensor([0, *accumulate(lengths)], dtype=torch.int32),
        cu_rows=torch.tensor([0, *accumulate(rows)], dtype=torch.int32),
        max_row=max(rows) + slack,
        prediction_positions=nothing,
        labels=nothing,
        weights=nothing,
        sequence_labels=nothing,
        sequence_weights=nothing,
    )
