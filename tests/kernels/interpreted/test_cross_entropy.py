"""Cross-entropy by our own kernel: its numbers, rows without weight, extreme logits, and whose memory it takes."""

import pytest
import torch
from tests.kernels.interpreted.numbers import assert_the_same, draw
from tests.rows import each_row

from bertwright.model.kernels.cross_entropy import cross_entropy_sum, losses, plain_cross_entropy_sum


@each_row("dtype", [torch.float32, torch.float16, torch.bfloat16])
@each_row("classes", [2, 4096, 5003])
def test_losses_and_gradients_are_those_of_the_formula(classes: int, dtype: torch.dtype) -> None:
    labels, weights = torch.tensor([0, classes - 1, 1]), torch.tensor([1.0, 0.0, 2.5])
    inputs = [draw(3, classes, dtype=dtype) * 4]
    assert_the_same(
        lambda x: cross_entropy_sum(x, labels, weights), lambda x: plain_cross_entropy_sum(x, labels, weights), inputs
    )


def test_extreme_logits_overflow_nowhere() -> None:
    logits = torch.tensor([[-torch.inf, 3e38, 0.0], [-1e4, -1e4, -1e4]])
    loss, _ = losses(logits, torch.tensor([1, 2]))
    torch.testing.assert_close(loss, torch.tensor([0.0, torch.tensor(3.0).log()]))


def test_the_gradient_takes_the_memory_of_the_logits() -> None:
    leaf = draw(2, 300).requires_grad_()
    logits = leaf * 1
    loss = cross_entropy_sum(logits, torch.tensor([4, 200]), torch.ones(2))
    (gradient,) = torch.autograd.grad(loss, logits, retain_graph=True)
    assert gradient.data_ptr() == logits.data_ptr()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_no_predictions_have_no_loss() -> None:
    logits = torch.zeros(0, 50).requires_grad_()
    cross_entropy_sum(logits * 1, torch.zeros(0, dtype=torch.int64), torch.zeros(0)).backward()
    assert logits.grad is not None and logits.grad.shape == (0, 50)
