import numpy as np
import pytest
import torch
from tests.rows import each_row
from torch import Tensor

from bertwright.core.errors import RecipeError
from bertwright.optim import norms
from bertwright.optim.config import LambConfig
from bertwright.optim.norms import clip_global_norm, clip_part, square_norms


@pytest.fixture(params=["by rows", "at once"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Norms are taken in the way of CPUs, and in that of GPUs, which a CPU can do as well."""
    if request.param == "at once":
        monkeypatch.setattr(norms, "_by_rows", norms._at_once)


def parameters(*gradients: list[float]) -> list[torch.nn.Parameter]:
    made = [torch.nn.Parameter(torch.zeros(len(g))) for g in gradients]
    for p, g in zip(made, gradients, strict=True):
        p.grad = torch.tensor(g)
    return made


def test_long_gradients_are_divided_by_norm_over_limit() -> None:
    p, q = parameters([3.0, 0.0], [0.0, 4.0])
    assert float(clip_global_norm([p.grad, q.grad], 2.0)) == 5.0
    np.testing.assert_allclose(p.grad.numpy(), [1.2, 0], rtol=1e-7)
    np.testing.assert_allclose(q.grad.numpy(), [0, 1.6], rtol=1e-7)


@each_row("limit", [5.0, 7.0, 0.0])
def test_other_gradients_are_left_alone(limit: float) -> None:
    p, q = parameters([3.0, 0.0], [0.0, 4.0])
    assert float(clip_global_norm([p.grad, q.grad], limit)) == 5.0
    assert p.grad.tolist() == [3.0, 0.0] and q.grad.tolist() == [0.0, 4.0]


@each_row("bad", [float("inf"), float("nan")])
def test_a_norm_that_is_not_finite_is_reported_and_touches_nothing(bad: float) -> None:
    p, q = parameters([3.0, bad], [4.0])
    assert not torch.isfinite(clip_global_norm([p.grad, q.grad], 1.0))
    assert float(q.grad) == 4.0 and float(p.grad[0]) == 3.0


def test_norms_of_large_tensors_are_exact() -> None:
    """Summed in float32 one after another, as torch's own norm does on CPUs, the error would be above 1e-5."""
    x = torch.randn(8000, 512, generator=torch.Generator().manual_seed(0)) * 0.02
    exact = float(np.square(x.numpy(), dtype=np.float64).sum())
    found = square_norms([x, 2 * x, x[0, :7], torch.zeros(3, 0)])
    assert found.dtype == torch.float64
    tail = float(np.square(x[0, :7].numpy(), dtype=np.float64).sum())
    np.testing.assert_allclose(found.numpy(), [exact, 4 * exact, tail, 0], rtol=1e-7)


def test_tensors_that_lie_elsewhere_are_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(norms, "_at_once", lambda tensors: (asked.append(len(tensors)), Tensor())[1])
    square_norms([torch.empty(2, 3, device="meta"), torch.empty(5, device="meta")])
    assert asked == [2]


@each_row("loss_scale", [1.0, 1024.0])
def test_clipping_before_the_all_reduce_is_mlcommons_rule(loss_scale: float) -> None:
    """There each rank clips the gradient of the mean over its own examples, and the mean over ranks is taken."""
    random, limit = np.random.default_rng(0), 1.0
    ranks = [[random.normal(size=shape) * scale for shape in ((30, 7), (7,))] for scale in (1e-3, 0.05, 4.0)]
    lengths = [np.sqrt(sum((g**2).sum() for g in gradients)) for gradients in ranks]
    assert lengths[0] < lengths[1] < limit < lengths[2]
    expected, found = [np.zeros((30, 7)), np.zeros(7)], [torch.zeros(30, 7), torch.zeros(7)]
    for gradients, length in zip(ranks, lengths, strict=True):
        for total, gradient in zip(expected, gradients, strict=True):
            total += gradient * min(1, limit / length) / len(ranks)
        # Ours is of a sum divided by what the global batch counts: here a third of what the rank itself counts.
        part = [torch.tensor(gradient / len(ranks) * loss_scale, dtype=torch.float32) for gradient in gradients]
        norm = clip_part(part, limit, len(ranks), loss_scale)
        assert float(norm) == pytest.approx(length / len(ranks), rel=1e-6)
        for sum_, clipped in zip(found, part, strict=True):
            sum_ += clipped
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=0, atol=1e-6 * np.abs(other).max())
    assert float(square_norms(found).sum().sqrt()) <= limit


def test_where_nothing_is_clipped_it_cannot_be_clipped_before() -> None:
    assert LambConfig(clip_before_reduction=True).max_grad_norm == 1.0
    with pytest.raises(
        RecipeError, match=r"max_grad_norm 0 turns clipping off; set max_grad_norm=1\.0, or leave clip_"
    ):
        LambConfig(clip_before_reduction=True, max_grad_norm=0.0)
