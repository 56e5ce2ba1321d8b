"""The cross-entropy of logits in low precision: block by block, beside the formula in float64."""

import pytest
import torch
from tests.rows import each_row

from bertwright.tasks import terms as kept_gradient
from bertwright.tasks.distillation.objective import SoftTerm
from bertwright.tasks.terms import KeptGradient, cross_entropy_sum, times


def formula(logits: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Σ weight · (log Σ exp - right logit), and its gradient: weight · (softmax - one hot); float64."""
    wide, weight = logits.double(), weights.double()[:, None]
    right = wide.gather(1, labels[:, None])[:, 0]
    one_hot = torch.nn.functional.one_hot(labels, logits.shape[1])
    return ((wide.logsumexp(1) - right) * weight[:, 0]).sum(), (wide.softmax(1) - one_hot) * weight


@each_row("dtype", [torch.bfloat16, torch.float16])
@each_row("number", [0, 1, 7, 8, 9])
def test_sum_and_gradient_are_those_of_the_formula(
    number: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_gradient, "_BLOCK", {True: 4 * 50, False: 4 * 50})  # blocks of four rows
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


WORDS = 30_522
LAST_DIGIT, SMALLEST = 2.0**-11, 2.0**-24
"""Half of the last of float16's digits, and its smallest number."""


@each_row("scale", [1.0, 2.0**14, 2.0**20])
def test_loss_scaling_restores_float16_gradients(scale: float) -> None:
    """Rounded when it is kept and when it is given, and never to zero for want of a scale that came later."""
    random = torch.Generator().manual_seed(5)
    logits = (3 * torch.randn(5, WORDS, generator=random)).half().requires_grad_()
    labels, weights = torch.randint(0, WORDS, (5,), generator=random), torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0])
    total = 64
    (gradient,) = torch.autograd.grad(cross_entropy_sum(logits, labels, weights) / total * scale, logits)
    expected = formula(logits.detach(), labels, weights)[1] / total * scale
    torch.testing.assert_close(gradient.double(), expected, rtol=2.01 * LAST_DIGIT, atol=SMALLEST)
    # Without the scale nearly all of them are too small for float16 before it, and after it none of them is.
    lost = (gradient == 0) & (expected.abs() > SMALLEST)
    assert not lost.any() and ((gradient[weights > 0] != 0).double().mean() > 0.99) == (scale > 1)


@each_row("temperature", [0.25, 2.0])
def test_in_float16_answers_that_are_nearly_the_teachers_still_teach(temperature: float) -> None:
    random = torch.Generator().manual_seed(6)
    logits = (3 * temperature * torch.randn(4, WORDS, generator=random)).half().requires_grad_()
    teachers = logits.detach().float() + 1e-3 * temperature * torch.randn(4, WORDS, generator=random)
    weights, total, scale = torch.tensor([1.0, 0.0, 1.0, 1.0]), 64, 2.0**20
    term = SoftTerm(logits, teachers, weights, temperature, 1.0)
    (gradient,) = torch.autograd.grad(term.loss_sum / total * scale, logits)
    own, theirs = ((each.double() / temperature).softmax(-1) for each in (logits.detach(), teachers))
    factor = weights.double()[:, None] / temperature / total * scale
    expected = (own - theirs) * factor
    # float32 knows each probability to some 2e-6 of itself, and their difference no better.
    bound = 2.01 * LAST_DIGIT * expected.abs() + 4e-6 * (own + theirs) * factor + SMALLEST
    assert ((gradient.double() - expected).abs() <= bound).all()
    assert (gradient[0] != 0).double().mean() > 0.8 and not gradient[1].any()


def test_rows_of_any_size_are_kept_and_given_back() -> None:
    """From the smallest that float32 has to more than float16 has, and what is no number stays none."""
    rows = torch.tensor([[1e-38, -1e-38], [1e-12, 3e-13], [0.0, 0.0], [-1.0, 0.5], [7e4, 1.0], [torch.nan, 1.0]])
    kept = KeptGradient(torch.zeros(6, 2, dtype=torch.float16))
    kept.keep(slice(0, 6), rows.clone())
    assert kept.rows_NC[:5].isfinite().all()
    for factor in (1.0, 2.0**-8, 2.0**30):
        given = times(kept.rows_NC.clone(), kept.powers_N1, torch.tensor(factor))
        torch.testing.assert_close(
            given[:5], (rows[:5].double() * factor).half(), rtol=2.01 * LAST_DIGIT, atol=SMALLEST
        )
        assert given[5, 0].isnan()


@each_row("dtype", [torch.float32, torch.bfloat16])
def test_other_precisions_keep_their_rows_as_they_are(dtype: torch.dtype) -> None:
    kept, rows = KeptGradient(torch.zeros(2, 3, dtype=dtype)), torch.randn(2, 3)
    kept.keep(slice(0, 2), rows)
    assert kept.powers_N1 is None and torch.equal(kept.rows_NC, rows.to(dtype))
    assert times(kept.rows_NC, None, torch.tensor(3.0)) is kept.rows_NC
