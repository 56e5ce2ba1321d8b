"""A small network and random batches for it."""

from collections.abc import Sequence

import torch

from bertwright.model.batch import PackedBatch

NUMBERS = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "max_position_embeddings": 32,
}
"""Of a network small enough for float64 and for looking at."""


def random_batch(lengths: Sequence[int], seed: int = 0, vocab_size: int = 61) -> PackedBatch:
    """Random sequences of the given lengths, two predictions in each of length 3 or more, none of token 0."""
    random = torch.Generator().manual_seed(seed)
    bounds = torch.tensor([0, *lengths]).cumsum(0)
    total, count = int(bounds[-1]), len(lengths)
    places = [int(start) + offset for start, n in zip(bounds, lengths, strict=False) if n > 2 for offset in (1, n - 1)]
    return PackedBatch(
        token_ids=torch.randint(1, vocab_size, (total,), generator=random),
        position_ids=torch.cat([torch.arange(0), *(torch.arange(n) for n in lengths)]),
        segment_ids=torch.cat([torch.arange(0), *((torch.arange(n) >= n // 2).long() for n in lengths)]),
        cu_seqlens=bounds.int(),
        cu_rows=bounds.int(),
        max_row=max(lengths, default=0),
        prediction_positions=torch.tensor(places, dtype=torch.int64),
        labels=torch.randint(1, vocab_size, (len(places),), generator=random),
        weights=torch.ones(len(places)),
        sequence_labels=torch.randint(0, 2, (count,), generator=random),
        sequence_weights=torch.ones(count),
    )
