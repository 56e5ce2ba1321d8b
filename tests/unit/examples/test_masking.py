from itertools import pairwise

import numpy as np
import pytest
from pydantic import ValidationError
from tests.reference import masking as reference
from tests.reference import words as reference_words
from tests.rows import each_row

from bertwright.core.rng import below, fold, key
from bertwright.examples.config import MaskingConfig
from bertwright.examples.masking import Masking
from bertwright.examples.vocabulary import Vocabulary

SIZE = 3000
VOCABULARY = Vocabulary(
    hash="", size=SIZE, pad=0, unk=1, cls=2, sep=3, mask=4, unused=(), continues=tuple(range(1000, SIZE, 3))
)
WORDS = VOCABULARY.words


def rule(rate: float = 0.15, most: int = 20, **changes: object) -> Masking:
    return Masking(MaskingConfig.model_validate(changes), rate, most, VOCABULARY)


def masked(lengths: list[int], a_counts: list[int], masking: Masking, seed: int = 1):  # type: ignore[no-untyped-def]
    """Our masks of sequences of made-up ids: keys, sequences before, and (tokens, positions, labels) of each."""
    keys = fold(key(seed), np.arange(len(lengths)))
    sizes = np.array(lengths)
    sequences = [np.asarray(1000 + below(key(seed, "ids", n, i), np.arange(n), 2000)) for i, n in enumerate(lengths)]
    before = [sequence.tolist() for sequence in sequences]
    special = np.arange(max(lengths)) >= sizes[:, None] - 1
    special[:, 0] = special[np.arange(len(lengths)), np.array(a_counts) + 1] = True
    which, position = masking.choose(keys, sizes, special, np.concatenate(sequences))
    labels = np.array([sequences[s][p] for s, p in zip(which, position, strict=True)], np.int64)
    shown = masking.replace(keys[which], position, labels)
    for s, p, token in zip(which, position, shown, strict=True):
        sequences[s][p] = token
    return (
        keys,
        before,
        [
            (sequences[s].tolist(), position[which == s].tolist(), labels[which == s].tolist())
            for s in range(len(lengths))
        ],
    )


@each_row(("rate", "most"), [(0.15, 20), (0.15, 3), (0.4, 76), (1.0, 1000)])
def test_masks_are_those_of_the_plain_rule(rate: float, most: int) -> None:
    lengths, a_counts = [128, 5, 64, 64, 11, 300, 17], [60, 1, 1, 60, 4, 100, 7]
    keys, before, ours = masked(lengths, a_counts, rule(rate, most))
    for number, a in enumerate(a_counts):
        plain = reference.mask(before[number], a, int(keys[number]), rate, most, 4, WORDS.tolist())
        assert ours[number] == (plain.tokens, plain.positions, plain.labels)


@each_row(
    ("length", "count"),
    [(5, 1), (6, 1), (10, 2), (30, 4), (50, 8), (70, 10), (90, 14), (128, 19), (140, 20), (512, 20)],
)
def test_the_number_rounds_half_to_even_and_is_capped(length: int, count: int) -> None:
    # 10 * 0.15 = 1.5 -> 2, 30 * 0.15 = 4.5 -> 4, 50 * 0.15 = 7.5 -> 8, 70 * 0.15 = 10.5 -> 10, 90 * 0.15 = 13.5 -> 14
    masking = rule()
    assert (
        masking.counts(np.array([length]), np.array([3])).tolist() == [count] == [min(20, max(1, round(length * 0.15)))]
    )


def test_shares_are_80_10_10_and_replacements_uniform() -> None:
    n = 4000
    _, _, sequences = masked([n], [1000], rule(0.999999, 10**6))
    tokens, positions, labels = sequences[0]
    shown = np.array(tokens)[positions]
    total = len(positions)
    assert total == n - 3
    for share, observed in (
        (0.8, (shown == 4).sum()),
        (0.1, (shown == labels).sum()),
        (0.1, ((shown != 4) & (shown != labels)).sum()),
    ):
        assert abs(observed - share * total) < 4 * np.sqrt(total * share * (1 - share))


def specials(lengths: np.ndarray, a_counts: np.ndarray) -> np.ndarray:
    """Where [CLS], [SEP] and what follows the end of a sequence stand."""
    table = np.arange(lengths.max(initial=0)) >= lengths[:, None] - 1
    table[:, :1] = True
    table[np.arange(len(lengths)), a_counts + 1] = True
    return table


def test_every_candidate_is_equally_likely_and_specials_never_chosen() -> None:
    n, trials = 40, 20_000
    lengths = np.full(trials, n)
    keys, special = fold(key("uniform"), np.arange(trials)), specials(lengths, np.full(trials, 10))
    _, position = rule().choose(keys, lengths, special, np.zeros(0, int))
    counts = np.bincount(position, minlength=n)
    assert counts[[0, 11, n - 1]].tolist() == [0, 0, 0]
    observed = np.delete(counts, [0, 11, n - 1])
    expected = trials * 6 / 37
    freedom = 36
    chi_square = ((observed - expected) ** 2).sum() / expected * 37 / 31  # drawn without replacement
    assert abs(chi_square - freedom) < 4.5 * np.sqrt(2 * freedom)


def test_masks_do_not_depend_on_company() -> None:
    keys = fold(key(3), np.arange(50))
    lengths, a_counts = 10 + np.arange(50), np.full(50, 3)
    tokens = np.asarray(1000 + below(key("ids"), np.arange(lengths.sum()), 2000))
    starts = np.cumsum(lengths) - lengths
    for masking in (rule(), rule(unit="words"), rule(unit="spans"), rule(count="bernoulli")):
        which, positions = masking.choose(keys, lengths, specials(lengths, a_counts), tokens)
        for s in (0, 17, 49):
            one, mine = slice(s, s + 1), tokens[starts[s] : starts[s] + lengths[s]]
            _, alone = masking.choose(keys[one], lengths[one], specials(lengths[one], a_counts[one]), mine)
            assert alone.tolist() == positions[which == s].tolist()


def test_nothing_to_mask() -> None:
    empty = np.zeros(0, np.int64)
    which, position = rule().choose(empty.astype(np.uint64), empty, np.zeros((0, 0), bool), empty)
    assert len(which) == len(position) == 0


@each_row(("mask", "random"), [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (0.5, 0.25)])
def test_the_three_shares_are_keys(mask: float, random: float) -> None:
    n = 4000
    _, _, [(tokens, positions, labels)] = masked([n], [9], rule(0.999999, n, mask_share=mask, random_share=random))
    shown = np.array(tokens)[positions]
    for share, observed in ((mask, (shown == 4).mean()), (1 - mask - random, (shown == labels).mean())):
        assert abs(observed - share) <= 4 * np.sqrt(share * (1 - share) / n) + 1e-3


LENGTHS, A_COUNTS = [128, 5, 64, 64, 11, 300, 17, 512], [60, 1, 1, 60, 4, 100, 7, 200]


@each_row(("unit", "longest"), [("words", 3), ("spans", 1), ("spans", 3), ("spans", 10)])
@each_row(("rate", "most"), [(0.15, 80), (0.15, 7), (0.5, 400)])
def test_words_and_spans_are_those_of_the_plain_rule(unit: str, longest: int, rate: float, most: int) -> None:
    keys, before, ours = masked(LENGTHS, A_COUNTS, rule(rate, most, unit=unit, longest_span=longest))
    for number, a in enumerate(A_COUNTS):
        quota = min(most, max(1, round(LENGTHS[number] * rate)), LENGTHS[number] - 3)
        words = reference_words.words(before[number], a, VOCABULARY.continuation.tolist())
        spans = longest if unit == "spans" else 1
        assert ours[number][1] == reference_words.choose(words, int(keys[number]), quota, spans)


def test_a_word_is_predicted_whole_or_not_at_all() -> None:
    for masking in (rule(0.15, 80, unit="words"), rule(0.3, 512, unit="words", count="bernoulli")):
        _, before, ours = masked(LENGTHS, A_COUNTS, masking)
        for tokens, a, (_, positions, _) in zip(before, A_COUNTS, ours, strict=True):
            chosen = set(positions)
            for word in reference_words.words(tokens, a, VOCABULARY.continuation.tolist()):
                assert len(chosen & set(word)) in (0, len(word))


@each_row("unit", ["tokens", "words"])
def test_bernoulli_masks_have_the_rate_and_varying_numbers(unit: str) -> None:
    lengths = [128] * 800
    _, _, ours = masked(lengths, [60] * 800, rule(0.15, 128, count="bernoulli", unit=unit))
    numbers = np.array([len(positions) for _, positions, _ in ours])
    total, candidates = numbers.sum(), 800 * 125
    assert abs(total / candidates - 0.15) < 5 * np.sqrt(3 * 0.15 * 0.85 / candidates)
    spread = numbers.std() / np.sqrt(125 * 0.15 * 0.85)
    assert 0.9 < spread < 1.1 if unit == "tokens" else spread > 1.1
    _, _, few = masked(lengths, [60] * 800, rule(0.15, 5, count="bernoulli", unit=unit))
    assert max(len(positions) for _, positions, _ in few) == 5


def test_spans_have_the_drawn_lengths() -> None:
    """P(n) is in proportion to 1/n, so of three words at most 6/11, 3/11 and 2/11; a low rate keeps spans apart."""
    lengths = [2000] * 60
    _, before, ours = masked(lengths, [1500] * 60, rule(0.02, 10**6, unit="spans"))
    found = np.zeros(4, int)
    for tokens, (_, positions, _) in zip(before, ours, strict=True):
        words = reference_words.words(tokens, 1500, VOCABULARY.continuation.tolist())
        hit = [set(word) <= set(positions) for word in words]
        ends = [i for i, (now, then) in enumerate(pairwise([False, *hit, False])) if now != then]
        for start, stop in zip(ends[::2], ends[1::2], strict=True):
            found[min(stop - start, 4) - 1] += 1
    shares = found[:3] / found.sum()
    assert np.abs(shares - np.array([6, 3, 2]) / 11).max() < 0.06 and found[3] < 0.06 * found.sum()


def test_the_rate_may_change_with_the_step() -> None:
    config = MaskingConfig.model_validate({"rate": [[0, 0.3], [100, 0.2], [1000, 0.15]]})
    assert [config.rate_at(step) for step in (0, 99, 100, 999, 1000, 10**9)] == [0.3, 0.3, 0.2, 0.2, 0.15, 0.15]
    assert config.most(128) == 40


@each_row(
    ("wrong", "said"),
    [
        ({"rate": [[1, 0.3]]}, "from step 0 on"),
        ({"rate": [[0, 0.3], [5, 0.2], [5, 0.1]]}, "from step 0 on"),
        ({"rate": [[i, 0.1] for i in range(5)]}, "1 to 4 pairs"),
        ({"mask_share": 0.8, "random_share": 0.3}, "exceed 1 together"),
        ({"unit": "spans", "count": "bernoulli"}, "no effect for spans"),
        ({"longest_span": 5}, 'longest_span 5 has an effect only with unit = "spans", not "tokens"'),
        ({"unit": "words", "longest_span": 1}, 'only with unit = "spans", not "words"'),
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        MaskingConfig.model_validate(wrong)
