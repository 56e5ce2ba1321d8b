import numpy as np
import pytest
from tests.reference import masking as reference

from bertwright.core.rng import fold, key
from bertwright.examples.masking import Masking

WORDS = np.arange(5, 200)


def masked(lengths: list[int], a_counts: list[int], masking: Masking, seed: int = 1):  # type: ignore[no-untyped-def]
    """Our masks of sequences of made-up ids: keys, sequences, and (tokens, positions, labels) of each."""
    keys = fold(key(seed), np.arange(len(lengths)))
    sizes = np.array(lengths)
    sequences = [np.arange(1000, 1000 + n) for n in lengths]
    which, position = masking.choose(keys, sizes, np.array(a_counts), masking.counts(sizes, np.full(len(sizes), 3)))
    labels = np.array([sequences[s][p] for s, p in zip(which, position, strict=True)], np.int64)
    shown = masking.replace(keys[which], position, labels)
    for s, p, token in zip(which, position, shown, strict=True):
        sequences[s][p] = token
    return keys, [
        (sequences[s].tolist(), position[which == s].tolist(), labels[which == s].tolist()) for s in range(len(lengths))
    ]


@pytest.mark.parametrize(("rate", "most"), [(0.15, 20), (0.15, 3), (0.4, 76), (1.0, 1000)])
def test_masks_are_those_of_the_plain_rule(rate: float, most: int) -> None:
    lengths, a_counts = [128, 5, 64, 64, 11, 300, 17], [60, 1, 1, 60, 4, 100, 7]
    keys, ours = masked(lengths, a_counts, Masking(rate, most, 4, WORDS))
    for number, (n, a) in enumerate(zip(lengths, a_counts, strict=True)):
        plain = reference.mask(list(range(1000, 1000 + n)), a, int(keys[number]), rate, most, 4, WORDS.tolist())
        assert ours[number] == (plain.tokens, plain.positions, plain.labels)


@pytest.mark.parametrize(
    ("length", "count"),
    [(5, 1), (6, 1), (10, 2), (30, 4), (50, 8), (70, 10), (90, 14), (128, 19), (140, 20), (512, 20)],
)
def test_the_number_rounds_half_to_even_and_is_capped(length: int, count: int) -> None:
    # 10 * 0.15 = 1.5 -> 2, 30 * 0.15 = 4.5 -> 4, 50 * 0.15 = 7.5 -> 8, 70 * 0.15 = 10.5 -> 10, 90 * 0.15 = 13.5 -> 14
    masking = Masking(0.15, 20, 4, WORDS)
    assert (
        masking.counts(np.array([length]), np.array([3])).tolist() == [count] == [min(20, max(1, round(length * 0.15)))]
    )


def test_shares_are_80_10_10_and_replacements_uniform() -> None:
    masking, n = Masking(1.0, 10**6, 4, WORDS), 4000
    _, sequences = masked([n], [1000], masking)
    tokens, positions, labels = sequences[0]
    shown = np.array(tokens)[positions]
    total = len(positions)
    assert total == n - 3
    for share, observed in (
        (0.8, (shown == 4).sum()),
        (0.1, (shown == labels).sum()),
        (0.1, (shown < 200).sum() - (shown == 4).sum()),
    ):
        assert abs(observed - share * total) < 4 * np.sqrt(total * share * (1 - share))


def test_every_candidate_is_equally_likely_and_specials_never_chosen() -> None:
    masking, n = Masking(0.15, 20, 4, WORDS), 40
    trials = 20_000
    _, position = masking.choose(
        fold(key("uniform"), np.arange(trials)), np.full(trials, n), np.full(trials, 10), np.full(trials, 6)
    )
    counts = np.bincount(position, minlength=n)
    assert counts[[0, 11, n - 1]].tolist() == [0, 0, 0]
    observed = np.delete(counts, [0, 11, n - 1])
    expected = trials * 6 / 37
    freedom = 36
    chi_square = ((observed - expected) ** 2).sum() / expected * 37 / 31  # drawn without replacement
    assert abs(chi_square - freedom) < 4.5 * np.sqrt(2 * freedom)


def test_masks_do_not_depend_on_company() -> None:
    masking = Masking(0.15, 20, 4, WORDS)
    keys = fold(key(3), np.arange(50))
    lengths = 10 + np.arange(50)
    a_counts = np.full(50, 3)
    together = masking.choose(keys, lengths, a_counts, masking.counts(lengths, np.full(50, 3)))
    for s in (0, 17, 49):
        one = slice(s, s + 1)
        _, alone = masking.choose(keys[one], lengths[one], a_counts[one], masking.counts(lengths[one], np.array([3])))
        assert alone.tolist() == together[1][together[0] == s].tolist()


def test_nothing_to_mask() -> None:
    empty = np.zeros(0, np.int64)
    which, position = Masking(0.15, 20, 4, WORDS).choose(empty.astype(np.uint64), empty, empty, empty)
    assert len(which) == len(position) == 0
