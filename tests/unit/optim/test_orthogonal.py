"""Newton-Schulz in both orders of its products, beside the polynomial of singular values in float64."""

import numpy as np
import pytest
import torch
from tests.reference.muon import newton_schulz
from tests.rows import each_row
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from bertwright.optim.muon import orthogonalized

BOTH = [(12, 30), (30, 12), (16, 16), (1, 9), (24, 36), (64, 256)]


@each_row("shape", BOTH)
def test_the_iteration_moves_singular_values_near_one(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    got = orthogonalized(torch.tensor(matrix)).double().numpy()
    assert got == pytest.approx(newton_schulz(matrix), abs=1e-5)
    values = np.linalg.svd(got, compute_uv=False)
    well = np.linalg.svd(matrix, compute_uv=False) > 0.1 * np.linalg.norm(matrix)
    assert ((values[well] > 0.65) & (values[well] < 1.25)).all()
    assert orthogonalized(torch.tensor(matrix)).dtype == torch.float32


@each_row("shape", BOTH)
def test_in_low_precision_it_is_as_near_as_eight_bits_allow(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    found = orthogonalized(torch.tensor(matrix), low=True)
    expected, got = newton_schulz(matrix), found.double().numpy()
    assert found.dtype == torch.float32 and np.linalg.svd(got, compute_uv=False).max() < 1.25
    assert 1e-4 < np.linalg.norm(got - expected) / np.linalg.norm(expected) < 0.1


@each_row("shape", [(48, 192), (192, 48), (48, 48)])
@each_row("decades", [0, 3, 6, 20])
def test_small_singular_values_cost_no_more_than_a_thousandth(shape: tuple[int, int], decades: int) -> None:
    """Of gradients most singular values are small, and their squares are below the rounding of the Gram matrix."""
    random, rank = np.random.default_rng(decades), min(shape)
    left, right = (np.linalg.qr(random.normal(size=(side, rank)))[0] for side in shape)
    matrix = ((left * np.logspace(0, -decades, rank)) @ right.T).astype(np.float32)
    expected = newton_schulz(matrix)
    got = orthogonalized(torch.tensor(matrix)).double().numpy()
    assert np.linalg.norm(got - expected) < 1e-3 * np.linalg.norm(expected)


@each_row("shape", [(40, 160), (40, 40)])
def test_a_matrix_of_rank_one_keeps_its_direction(shape: tuple[int, int]) -> None:
    expected = newton_schulz(np.ones(shape))
    got = orthogonalized(torch.ones(shape)).double().numpy()
    assert np.linalg.norm(got - expected) < 1e-3 * np.linalg.norm(expected)


def test_a_zero_gradient_moves_nothing_but_decay() -> None:
    for shape in BOTH:
        assert torch.equal(orthogonalized(torch.zeros(shape)), torch.zeros(shape))


def test_factors_first_take_fewer_operations_if_wide() -> None:
    def flops(matrix: Tensor) -> int:
        with FlopCounterMode(display=False) as counter:
            orthogonalized(matrix)
        return counter.get_total_flops()

    each_time = 5 * (4 * 4 + 2)  # in cubes of the rows
    assert flops(torch.ones(32, 128)) == flops(torch.ones(128, 32)) == 50 * 32**3 < each_time * 32**3
    assert flops(torch.ones(32, 32)) == 30 * 32**3
