import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from bertwright.tasks.terms import cross_entropy_sum


def test_losses_are_weighted_sums_of_cross_entropies() -> None:
    random = np.random.default_rng(0)
    logits, labels, weights = random.normal(size=(9, 31)) * 3, random.integers(0, 31, 9), np.array([1, 0, 1] * 3)
    by_hand = sum(w * (np.log(np.exp(row).sum()) - row[y]) for row, y, w in zip(logits, labels, weights, strict=True))
    loss = cross_entropy_sum(torch.tensor(logits), torch.tensor(labels), torch.tensor(weights, dtype=torch.float32))
    np.testing.assert_allclose(float(loss), by_hand, rtol=1e-12)
    pairs = cross_entropy_sum(torch.zeros(5, 2), torch.tensor([0, 1, 0, 1, 1]), torch.tensor([1.0, 1, 1, 1, 0]))
    np.testing.assert_allclose(float(pairs), 4 * np.log(2), rtol=1e-6)


def test_a_sum_does_not_care_how_the_batch_is_cut() -> None:
    logits, labels, weights = torch.randn(12, 7, dtype=torch.float64), torch.arange(12) % 7, torch.ones(12)
    whole = cross_entropy_sum(logits, labels, weights)
    parts = [cross_entropy_sum(logits[part], labels[part], weights[part]) for part in (slice(5), slice(5, None))]
    torch.testing.assert_close(whole, sum(parts), rtol=1e-14, atol=0)


def test_half_precision_logits_are_summed_in_float32() -> None:
    logits = torch.zeros(4096, 8, dtype=torch.bfloat16)
    loss = cross_entropy_sum(logits, torch.zeros(4096, dtype=torch.long), torch.ones(4096))
    assert loss.dtype == torch.float32
    np.testing.assert_allclose(float(loss), 4096 * np.log(8), rtol=1e-5)


def test_gradients_are_those_of_torchs_cross_entropy() -> None:
    logits = torch.randn(9, 31, dtype=torch.float64, requires_grad=True)
    labels, weights = torch.arange(9) * 3, torch.tensor([1.0, 0, 0.5] * 3)
    (expected,) = torch.autograd.grad((cross_entropy(logits, labels, reduction="none") * weights).sum() * 7, logits)
    (got,) = torch.autograd.grad(cross_entropy_sum(logits, labels, weights) * 7, logits)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-14)
    assert not got[weights == 0].any()


def test_half_precision_logits_get_half_precision_gradients() -> None:
    logits = torch.zeros(4, 8, dtype=torch.bfloat16, requires_grad=True)
    cross_entropy_sum(logits, torch.zeros(4, dtype=torch.long), torch.ones(4)).backward()
    assert logits.grad is not None and logits.grad.dtype == torch.bfloat16
    assert logits.grad[:, 0].tolist() == [-0.875] * 4


def test_a_second_backward_is_refused_rather_than_wrong() -> None:
    loss = cross_entropy_sum(torch.zeros(4, 8, requires_grad=True), torch.zeros(4, dtype=torch.long), torch.ones(4))
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
