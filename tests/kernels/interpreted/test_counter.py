"""The masks of dropout: those of the plain statement, at their rate, and without patterns."""

import numpy as np
import torch
import triton
import triton.language as tl
from tests.rows import each_row
from torch import Tensor

from bertwright.model.kernels.counter import Mask, draw_mask, is_kept, plain_factors, row_words, threshold_of


@triton.jit
def draw(seed_ptr, out_ptr, group, threshold, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    one, two = row_words(tl.load(seed_ptr), rows, group)
    kept = is_kept(one[:, None], two[:, None], columns[None, :], threshold)
    tl.store(out_ptr + rows[:, None] * COLUMNS + columns[None, :], kept.to(tl.int8))


def drawn(mask: Mask, group: int, rows: int, columns: int) -> Tensor:
    out = torch.empty(rows, columns, dtype=torch.int8)
    draw[(1,)](mask.seed, out, group, threshold_of(mask.p)[0], ROWS=rows, COLUMNS=columns)
    return out.bool()


@each_row("seed", [0, 1, 2**31, 2**62 + 12_345])
@each_row("p", [0.001, 0.1, 0.7])
def test_masks_are_those_of_the_plain_statement(seed: int, p: float) -> None:
    mask = Mask(torch.tensor([seed]), p)
    plain = plain_factors(mask, torch.arange(64), 3, torch.arange(128))
    assert torch.equal(drawn(mask, 3, 64, 128), plain > 0)
    torch.testing.assert_close(plain[plain > 0].unique(), torch.tensor([threshold_of(p)[1]]))


def test_words_are_those_of_philox() -> None:
    """Known answers of Random123: the counters and keys of ones, and of zeros."""
    from bertwright.model.kernels.counter import _philox

    zeros = _philox(0, torch.tensor([0]), 0)
    assert [hex(int(word)) for word in zeros] == ["0x6627e8d5", "0xe169c58d"]


@each_row("p", [0.1, 0.5])
def test_masks_have_no_patterns(p: float) -> None:
    """Rates of the whole, of rows and of columns, and correlations of neighbours, are those of independent draws."""
    mask = Mask(torch.tensor([20_261_128]), p)
    kept = (plain_factors(mask, torch.arange(2048), 5, torch.arange(1024)) > 0).numpy()
    other = (plain_factors(mask, torch.arange(2048), 6, torch.arange(1024)) > 0).numpy()
    centred, deviation = kept - (1 - p), (p * (1 - p)) ** 0.5
    assert abs(centred.mean()) < 4 * deviation / kept.size**0.5
    for axis in (0, 1):
        rates = centred.mean(axis) / (deviation / kept.shape[axis] ** 0.5)
        assert abs(rates.var() - 1) < 6 * (2 / rates.size) ** 0.5 and abs(rates).max() < 5
    pairs = [(centred[1:], centred[:-1]), (centred[:, 1:], centred[:, :-1]), (centred[:, 32:], centred[:, :-32])]
    for one, beside in [*pairs, (centred, other - (1 - p)), (centred[1:, 1:], centred[:-1, :-1])]:
        assert abs((one * beside).mean()) < 4 * deviation**2 / one.size**0.5


def test_without_dropout_nothing_is_drawn() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    assert draw_mask(0.0, torch.device("cpu")).p == 0 and torch.equal(torch.get_rng_state(), before)
    seeds = np.array([int(draw_mask(0.1, torch.device("cpu")).seed) for _ in range(3)])
    assert len(set(seeds)) == 3 and (seeds >= 0).all()
