import torch
from tests.rows import each_row
from torch import Tensor

from bertwright.model.modern.rotary import Projection, rotate, rotation

TOKENS, HEADS, WIDTH = 40, 3, 16


@each_row(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12), (torch.bfloat16, 0.05)])
def test_pairs_rotated_as_complex_numbers(dtype: torch.dtype, tolerance: float) -> None:
    """On a CPU outputs and gradients are those of `rotate`, with the elements of a pair adjacent."""
    torch.manual_seed(0)
    turned = rotation(torch.arange(TOKENS), WIDTH, 10_000.0)
    projection = Projection(HEADS * WIDTH, HEADS).to(dtype)
    x, y = (torch.linspace(-1, 1, TOKENS * HEADS * WIDTH).sin().view(TOKENS, -1).to(dtype) for _ in range(2))
    directions = torch.randn(3, TOKENS, HEADS, WIDTH).to(dtype)

    q, k, v = projection.rotated(x.requires_grad_(), turned)
    of_weight, of_x = torch.autograd.grad(
        [q, k, v], [projection.weight, x], [adjacent(directions[0]), adjacent(directions[1]), directions[2]]
    )
    parts = torch.nn.functional.linear(y.requires_grad_(), projection.weight).view(TOKENS, 3, HEADS, WIDTH).unbind(1)
    plain = [rotate(parts[0], turned), rotate(parts[1], turned), parts[2]]
    expected = torch.autograd.grad(plain, [projection.weight, y], list(directions))

    for one, other in zip((q, k, v), (adjacent(plain[0]), adjacent(plain[1]), plain[2]), strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)
    for one, other in zip((of_weight, of_x), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance * float(other.abs().max()))


def adjacent(x_TAD: Tensor) -> Tensor:
    """The i-th element of each half in turn."""
    return x_TAD.unflatten(-1, (2, -1)).mT.flatten(-2)  # type: ignore[no-untyped-call]


def test_a_gradient_that_is_one_number_for_all_elements() -> None:
    projection, turned = Projection(HEADS * WIDTH, HEADS), rotation(torch.arange(TOKENS), WIDTH, 10_000.0)
    x = torch.randn(TOKENS, HEADS * WIDTH)
    expanded, written = (
        torch.autograd.grad(projection.rotated(x, turned)[0], projection.weight, gradient)
        for gradient in (torch.ones(()).expand(TOKENS, HEADS, WIDTH), torch.ones(TOKENS, HEADS, WIDTH))
    )
    assert torch.equal(expanded[0], written[0])
