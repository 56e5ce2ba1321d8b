import numpy as np
import pytest
import torch
from torch import Tensor

from bertwright.optim import norms
from bertwright.optim.norms import clip_global_norm, square_norms


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


def test_gradients_longer_than_the_limit_are_divided_by_norm_over_limit() -> None:
    p, q = parameters([3.0, 0.0], [0.0, 4.0])
    assert float(clip_global_norm([p.grad, q.grad], 2.0)) == 5.0
    np.testing.assert_allclose(p.grad.numpy(), [1.2, 0], rtol=1e-7)
    np.testing.assert_allclose(q.grad.numpy(), [0, 1.6], rtol=1e-7)


@pytest.mark.parametrize("limit", [5.0, 7.0, 0.0], ids=["at the limit", "within it", "clipping off"])
def test_other_gradients_are_left_alone(limit: float) -> None:
    p, q = parameters([3.0, 0.0], [0.0, 4.0])
    assert float(clip_global_norm([p.grad, q.grad], limit)) == 5.0
    assert p.grad.tolist() == [3.0, 0.0] and q.grad.tolist() == [0.0, 4.0]


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
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
