import torch
from tests.rows import each_row
from torch import Tensor

from bertwright.model.modern.rotary import rotate, rotate_queries_and_keys, rotation

TOKENS, HEADS, WIDTH = 40, 3, 16


@each_row("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_pairs_rotated_as_complex_numbers(dtype: torch.dtype) -> None:
    """Outputs and gradients are those of `rotate`, with the elements of a pair adjacent."""
    turned = rotation(torch.arange(TOKENS), WIDTH, 10_000.0)
    ours, plain = (inputs(dtype) for _ in range(2))
    q, k, v = rotate_queries_and_keys(ours, turned)
    directions = torch.randn(3, TOKENS, HEADS, WIDTH).to(dtype)
    torch.autograd.backward([q, k, v], [adjacent(directions[0]), adjacent(directions[1]), directions[2]])
    expected = [rotate(plain[:, 0], turned), rotate(plain[:, 1], turned), plain[:, 2]]
    torch.autograd.backward(expected, list(directions))
    assert torch.equal(v, expected[2])
    for one, other in ((q, expected[0]), (k, expected[1])):
        torch.testing.assert_close(one, adjacent(other))
    assert ours.grad is not None and plain.grad is not None
    # The plain rule adds two products that are rounded already.
    torch.testing.assert_close(ours.grad, plain.grad, **({"rtol": 0.02, "atol": 0.02} if dtype.itemsize < 4 else {}))


def inputs(dtype: torch.dtype) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(TOKENS, 3, HEADS, WIDTH).to(dtype).requires_grad_()


def adjacent(x_TAD: Tensor) -> Tensor:
    """The i-th element of each half in turn."""
    return x_TAD.unflatten(-1, (2, -1)).mT.flatten(-2)
