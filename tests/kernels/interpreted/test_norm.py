"""Bias, dropout, residual and layer norm by our own kernel."""

import pytest
import torch
from tests.kernels.interpreted.numbers import assert_the_same, draw
from tests.rows import each_row
from torch import Tensor

from bertwright.model.kernels import norm
from bertwright.model.kernels.counter import Mask
from bertwright.model.kernels.norm import Norm, add_norm, add_norm_forward, plain_add_norm


def inputs(rows: int, width: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    shapes = [(rows, width), (width,), (rows, width), (width,), (width,)]
    return [draw(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(shapes)]


def compare(given: list[Tensor], p: float) -> None:
    mask = Mask(torch.tensor([123_456_789_123]), p)
    sides = (
        lambda x, b, r, weight, shift, rule=rule: rule(x, b, r, Norm(weight, shift, 1e-5), mask)
        for rule in (add_norm, plain_add_norm)
    )
    assert_the_same(*sides, given)


@each_row("p", [0.0, 0.4])
@each_row("dtype", [torch.float32, torch.float16, torch.bfloat16])
@each_row("rows, width", [(1, 8), (5, 70), (3, 128)])
def test_outputs_and_gradients_are_those_of_the_formula(rows: int, width: int, dtype: torch.dtype, p: float) -> None:
    """With dropout they agree only if forward and backward drop what the plain statement drops."""
    compare(inputs(rows, width, dtype), p)


@each_row("p", [0.0, 0.4])
def test_a_program_sums_over_several_rows(monkeypatch: pytest.MonkeyPatch, p: float) -> None:
    monkeypatch.setattr(norm, "_PROGRAMS", 2)
    compare(inputs(7, 24), p)


def test_the_residual_may_be_wider_than_the_product() -> None:
    """As under autocast: the output has the residual's type."""
    x, bias, residual, weight, shift = inputs(3, 24)
    mask = Mask(torch.empty(0, dtype=torch.int64), 0.0)
    assert add_norm(x.bfloat16(), bias, residual, Norm(weight, shift, 1e-5), mask).dtype == torch.float32


@pytest.mark.filterwarnings("ignore::UserWarning:torch.*")
def test_its_operator_is_registered_as_torch_requires() -> None:
    given = (x.requires_grad_() for x in inputs(3, 16))
    torch.library.opcheck(add_norm_forward, (*given, torch.tensor([3]), 1e-5, 0.1))
