"""Dropout on a CPU: the probability, the mean, the gradient, the generator, any shape and type."""

import traceback

import pytest
import torch
from tests.rows import each_row

from bertwright.model.dropout import Dropout, drop, seed_dropout


@each_row("p", [0.1, 0.5, 0.9])
def test_it_drops_with_its_probability_and_keeps_the_mean(p: float) -> None:
    torch.manual_seed(0)
    dropped = drop(torch.ones(1000, 1000), p)
    assert float((dropped == 0).double().mean()) == pytest.approx(p, abs=4 * (p * (1 - p)) ** 0.5 / 1000)
    values = dropped[dropped != 0].unique()
    assert len(values) == 1 and float(values) == pytest.approx(1 / (1 - p), rel=1e-4)
    assert float(dropped.double().mean()) == pytest.approx(1.0, abs=0.01)


def test_elements_of_a_random_number_drop_independently() -> None:
    torch.manual_seed(0)
    lanes = (drop(torch.ones(400_000, 4), 0.3) == 0).double()
    assert lanes.mean(0).tolist() == pytest.approx([0.3] * 4, abs=0.004)
    correlation = torch.corrcoef(lanes.T) - torch.eye(4)
    assert float(correlation.abs().max()) < 0.01


def test_the_gradient_passes_where_the_value_did() -> None:
    x = torch.ones(37, 5, requires_grad=True)
    dropped = drop(x, 0.4)
    (gradient,) = torch.autograd.grad(dropped.sum(), x)
    assert torch.equal(gradient, dropped)


def test_it_is_a_function_of_the_generator() -> None:
    def once(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return drop(torch.ones(50), 0.5)

    assert torch.equal(once(3), once(3)) and not torch.equal(once(3), once(4))


@each_row("key", [0, 7, 2**64 - 1])
def test_seeding_is_that_of_torch_without_its_tracebacks(key: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(key)
    expected = torch.get_rng_state()
    torch.manual_seed(1)
    monkeypatch.setattr(traceback, "format_stack", lambda: pytest.fail("a traceback for each kind of GPU"))
    seed_dropout(torch.device("cpu"), key)
    assert torch.equal(torch.get_rng_state(), expected)


@each_row("shape", [(0,), (1,), (3, 7), (2, 3, 5)])
@each_row("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_any_shape_and_type(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    dropped = drop(torch.ones(shape, dtype=dtype), 0.25)
    assert dropped.shape == shape and dropped.dtype == dtype


def test_nothing_is_drawn_where_nothing_is_dropped() -> None:
    torch.manual_seed(1)
    before, x = torch.get_rng_state(), torch.ones(8)
    assert drop(x, 0.0) is x and Dropout(0.5).eval()(x) is x
    assert torch.equal(torch.get_rng_state(), before)
