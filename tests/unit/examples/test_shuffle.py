import numpy as np
from tests.rows import each_row

from bertwright.core.rng import fold, key
from bertwright.examples.shuffle import Permutation, permute


@each_row("n", [1, 2, 3, 4, 7, 64, 1000, 4097])
def test_every_row_comes_once(n: int) -> None:
    assert sorted(Permutation(5, n)(np.arange(n)).tolist()) == list(range(n))


@each_row("n", [101, 640, 1000, 1023, 2049])
def test_every_row_comes_once_in_blocks(n: int) -> None:
    order = Permutation(5, n, in_memory=100, block=64, window=300)
    assert sorted(order(np.arange(n)).tolist()) == list(range(n))


def test_a_position_needs_no_other_position() -> None:
    order = Permutation(9, 5000, in_memory=100, block=64, window=1000)
    whole = order(np.arange(5000))
    assert [int(order([i])[0]) for i in (0, 1, 999, 1000, 4999)] == whole[[0, 1, 999, 1000, 4999]].tolist()


def test_a_window_reads_few_blocks_and_mixes_them() -> None:
    order = Permutation(3, 100_000, in_memory=1000, block=64, window=6400)
    window = order(np.arange(6400, 12800))
    blocks = window // 64
    assert len(np.unique(blocks)) <= 102  # 100 blocks, or 101 and the short one
    assert np.mean(blocks[1:] == blocks[:-1]) < 0.03  # neighbours come from different blocks
    assert np.ptp(np.unique(blocks)) > 1000  # and the blocks from everywhere


def _chi_square(observed: np.ndarray) -> float:
    expected = observed.sum() / observed.size
    return float(((observed - expected) ** 2).sum() / expected)


@each_row("n", [6, 37])
def test_positions_are_uniform(n: int) -> None:
    keys = fold(key("uniformity"), np.arange(3000))
    places = np.arange(n)
    table = np.zeros((n, n))
    np.add.at(table, (np.broadcast_to(places, (3000, n)), permute(keys[:, None], n, places)), 1)
    freedom = (n - 1) ** 2
    assert abs(_chi_square(table) * (n - 1) / n - freedom) < 4.5 * np.sqrt(2 * freedom)


def test_pairs_of_positions_are_uniform() -> None:
    n, trials = 20, 20_000
    table = np.zeros((n, n))
    keys = fold(key("pairs"), np.arange(trials))
    np.add.at(table, tuple(permute(keys[:, None], n, [0, 1]).T), 1)
    assert np.trace(table) == 0
    observed = table[~np.eye(n, dtype=bool)]
    freedom = observed.size - 1
    assert abs(_chi_square(observed) - freedom) < 4.5 * np.sqrt(2 * freedom)


def test_keys_give_different_orders() -> None:
    a, b = (Permutation(k, 1000)(np.arange(1000)) for k in (1, 2))
    assert np.mean(a == b) < 0.02
