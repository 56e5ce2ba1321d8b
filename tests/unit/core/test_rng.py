"""The counter hash against published SplitMix64 vectors, a plain restatement, and simple statistics."""

import numpy as np
from tests.rows import each_row

from bertwright.core import rng

# Output of SplitMix64 seeded with 1234567, as published with the algorithm's reference implementations.
PUBLISHED = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
MASK = (1 << 64) - 1


def plain_splitmix64(seed: int, index: int) -> int:
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def test_published_vectors() -> None:
    assert rng.bits(1234567, np.arange(5)).tolist() == PUBLISHED


@each_row("seed", [0, 1, MASK, rng.key("any", 3)])
def test_equals_the_plain_restatement_at_any_counter(seed: int) -> None:
    counters = [0, 1, 2, 1000, 2**40, MASK]
    assert rng.bits(seed, np.array(counters, dtype=np.uint64)).tolist() == [plain_splitmix64(seed, c) for c in counters]


def test_keys_and_counters_broadcast() -> None:
    keys = rng.fold(7, np.arange(3))
    table = rng.bits(keys[:, None], np.arange(4)[None, :])
    assert table.shape == (3, 4)
    assert table[2, 3] == plain_splitmix64(int(keys[2]), 3)


def test_key_is_stable_and_separates_its_parts() -> None:
    assert rng.key(12345, "mask", 0) == 1697234026343759102
    different = {rng.key("a", "b"), rng.key("ab"), rng.key("b", "a"), rng.key("a", "b", ""), rng.key(1), rng.key("1")}
    assert len(different) == 6


def test_uniform_and_below_are_in_range_and_even() -> None:
    u = rng.uniform(3, np.arange(100_000))
    assert u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < 0.005
    counts = np.bincount(rng.below(3, np.arange(100_000), 7), minlength=7)
    chi_square = float(((counts - 100_000 / 7) ** 2 / (100_000 / 7)).sum())
    assert len(counts) == 7 and chi_square < 22.5  # 0.1 % point of chi-square with 6 degrees of freedom
