import numpy as np
import pytest

from bertwright.core.rng import below, key
from bertwright.examples.deal import deal


def lengths(n: int) -> np.ndarray:
    return 5 + below(key("lengths"), np.arange(n), 124)


@pytest.mark.parametrize("rows", [1, 2, 7, 64, 257])
@pytest.mark.parametrize("world", [1, 2, 3, 8])
@pytest.mark.parametrize("micro_batch", [1, 4, 32])
def test_every_row_goes_to_one_rank(rows: int, world: int, micro_batch: int) -> None:
    dealt = [deal(lengths(rows), rank, world, micro_batch) for rank in range(world)]
    assert sorted(np.concatenate([row for rank in dealt for row in rank]).tolist()) == list(range(rows))
    assert len({len(rank) for rank in dealt}) == 1, "the same number of micro-batches everywhere"
    per_rank = [sum(map(len, rank)) for rank in dealt]
    assert max(per_rank) - min(per_rank) <= 1
    for rank in dealt:
        sizes = [len(part) for part in rank]
        assert max(sizes) <= micro_batch and max(sizes) - min(sizes) <= 1


def test_micro_batches_are_full_where_they_can_be() -> None:
    assert [len(part) for part in deal(lengths(256), 1, 4, 32)] == [32, 32]


def test_tokens_are_nearly_equal_and_lengths_meet() -> None:
    sizes = lengths(4096)
    dealt = [deal(sizes, rank, 8, 32) for rank in range(8)]
    tokens = [sum(int(sizes[part].sum()) for part in rank) for rank in dealt]
    assert (max(tokens) - min(tokens)) / np.mean(tokens) < 0.001
    assert max(np.ptp(sizes[part]) for rank in dealt for part in rank) < 20  # of 124


def test_rows_of_equal_length_keep_their_order() -> None:
    assert np.concatenate(deal(np.full(10, 7), 0, 1, 3)).tolist() == list(range(10))


@pytest.mark.parametrize(("rank", "world", "micro_batch"), [(2, 2, 1), (-1, 2, 1), (0, 1, 0)])
def test_nonsense_is_refused(rank: int, world: int, micro_batch: int) -> None:
    with pytest.raises(ValueError, match="need 0 <= rank < world"):
        deal(lengths(4), rank, world, micro_batch)
