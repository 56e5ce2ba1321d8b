"""The cross-entropy of logits in low precision: block by block, beside the formula in float64."""

import pytest
import torch

from bertwright.objectives import term
from bertwright.objectives.term import cross_entropy_sum


def formula(logits: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Σ weight · (log Σ exp - right logit), and its gradient: weight · (softmax - one hot); float64."""
    wide, weight = logits.double(), weights.double()[:, None]
    right = wide.gather(1, labels[:, None])[:, 0]
    one_hot = torch.nn.functional.one_hot(labels, logits.shape[1])
    return ((wide.logsumexp(1) - right) * weight[:, 0]).sum(), (wide.softmax(1) - one_hot) * weight


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("number", [0, 1, 7, 8, 9])
def test_sum_and_gradient_are_those_of_the_formula(
    number: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term, "_BLOCK", {True: 4 * 50, False: 4 * 50})  # blocks of four rows
    random = torch.Generator().manual_seed(number)
    logits = (8 * torch.randn(number, 50, generator=random)).to(dtype).requires_grad_()
    labels = torch.randint(0, 50, (number,), generator=random)
    weights = torch.tensor([1.0, 0.0, 0.5] * 3)[:number]
    loss = cross_entropy_sum(logits, labels, weights)
    expected, slope = formula(logits.detach(), labels, weights)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=1e-6)
    (gradient,) = torch.autograd.grad(loss * 3, logits)
    assert gradient.dtype == dtype
    torch.testing.assert_close(gradient.double(), 3 * slope, rtol=0.01, atol=1e-3)


def test_large_logits_do_not_overflow() -> None:
    logits = torch.tensor([[3e38, 1.0], [-3e38, 1.0]], dtype=torch.bfloat16)
    assert float(cross_entropy_sum(logits, torch.tensor([0, 1]), torch.ones(2))) == 0.0


def test_its_gradient_is_used_once() -> None:
    logits = torch.zeros(2, 3, dtype=torch.bfloat16, requires_grad=True)
    loss = cross_entropy_sum(logits, torch.tensor([0, 1]), torch.ones(2))
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
