from itertools import product

import numpy as np
import pytest
from tests.rows import each_row

from bertwright.core.rng import below, key
from bertwright.examples.config import MicroBatching
from bertwright.examples.packing import assign_to_ranks, pack


def lengths(n: int) -> np.ndarray:
    return 5 + below(key("lengths"), np.arange(n), 124)


BATCHINGS = [
    MicroBatching(1),
    MicroBatching(4),
    MicroBatching(32),
    MicroBatching(1, row_tokens=128),
    MicroBatching(4, row_tokens=128),
    MicroBatching(9, micro_tokens=300),
]


@each_row("rows", [1, 2, 7, 64, 257])
@each_row("world", [1, 2, 3, 8])
@each_row("batching", BATCHINGS)
def test_every_row_goes_to_one_rank(rows: int, world: int, batching: MicroBatching) -> None:
    sizes = lengths(rows)
    assigned = [assign_to_ranks(sizes, rank, world, batching) for rank in range(world)]
    assert sorted(np.concatenate([one.examples for rank in assigned for one in rank]).tolist()) == list(range(rows))
    assert len({len(rank) for rank in assigned}) == 1, "the same number of micro-batches everywhere"
    for one in (one for rank in assigned for one in rank):
        assert one.row_sizes.sum() == len(one.examples)
        ends = np.concatenate([[0], np.cumsum(sizes[one.examples])])
        row_tokens = np.diff(ends[np.concatenate([[0], np.cumsum(one.row_sizes)])])
        assert row_tokens.max(initial=0) <= 128
        assert (
            len(row_tokens) <= batching.micro_batch if not batching.micro_tokens else ends[-1] <= batching.micro_tokens
        )


@each_row(("rows", "world", "micro_batch"), [*product([1, 7, 64, 257], [1, 3, 8], [1, 4, 32])])
def test_without_packing_ranks_and_micro_batches_are_of_a_size(rows: int, world: int, micro_batch: int) -> None:
    assigned = [
        [len(one.examples) for one in assign_to_ranks(lengths(rows), rank, world, MicroBatching(micro_batch))]
        for rank in range(world)
    ]
    totals = list(map(sum, assigned))
    assert max(totals) - min(totals) <= 1
    assert all(max(sizes) <= micro_batch and max(sizes) - min(sizes) <= 1 for sizes in assigned)


def test_micro_batches_are_full_where_they_can_be() -> None:
    assert [len(one.examples) for one in assign_to_ranks(lengths(256), 1, 4, MicroBatching(32))] == [32, 32]


def test_tokens_are_nearly_equal_and_lengths_meet() -> None:
    sizes = lengths(4096)
    assigned = [[one.examples for one in assign_to_ranks(sizes, rank, 8, MicroBatching(32))] for rank in range(8)]
    tokens = [sum(int(sizes[part].sum()) for part in rank) for rank in assigned]
    assert (max(tokens) - min(tokens)) / np.mean(tokens) < 0.001
    assert max(np.ptp(sizes[part]) for rank in assigned for part in rank) < 20  # of 124


def test_rows_of_equal_length_keep_their_order() -> None:
    assert np.concatenate(
        [one.examples for one in assign_to_ranks(np.full(10, 7), 0, 1, MicroBatching(3))]
    ).tolist() == list(range(10))


def plain_best_fit(sizes: list[int], room: int) -> list[int]:
    """Best fit, longest first, with a list of bins and a search through all of them."""
    left: list[int] = []
    found = [0] * len(sizes)
    for i in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        fitting = [b for b in range(len(left)) if left[b] >= sizes[i]]
        if fitting:
            found[i] = min(fitting, key=lambda b: left[b])
        else:
            found[i] = len(left)
            left.append(room)
        left[found[i]] -= sizes[i]
    return found


@each_row("count", [0, 1, 5, 60, 700])
def test_packing_fills_as_the_plain_rule_does(count: int) -> None:
    """Which of several equally full bins is taken makes no difference to how full they end."""
    sizes = lengths(count)
    bins, plain = pack(sizes, 128), np.array(plain_best_fit(sizes.tolist(), 128), int)
    filled = [np.bincount(b, weights=sizes).tolist() for b in (bins, plain)]
    assert sorted(filled[0]) == sorted(filled[1]) and max(filled[0], default=0) <= 128
    assert not count or set(bins.tolist()) == set(range(bins.max() + 1))


def test_rows_of_mixed_lengths_are_nearly_full() -> None:
    drawn = 5 + below(key("long"), np.arange(1024), 507)
    sizes = np.where(np.arange(1024) % 3 > 0, 512, drawn)  # of pairs from real articles two in three are cut to size
    rows = assign_to_ranks(sizes, 0, 1, MicroBatching(8, row_tokens=512))
    assert sizes.sum() / (512 * sum(len(one.row_sizes) for one in rows)) > 0.99


@each_row(("rank", "world", "micro_batch"), [(2, 2, 1), (-1, 2, 1), (0, 1, 0)])
def test_nonsense_is_refused(rank: int, world: int, micro_batch: int) -> None:
    with pytest.raises(ValueError, match="these must satisfy 0 <= rank < world"):
        assign_to_ranks(lengths(4), rank, world, MicroBatching(micro_batch))
