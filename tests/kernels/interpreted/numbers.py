"""A kernel beside its plain statement: outputs and gradients, against float64."""

from collections.abc import Callable

import torch
from torch import Tensor

TOLERANCE = {torch.float32: 5e-6, torch.float16: 8e-3, torch.bfloat16: 6e-2}
"""Of numbers about 1. In low precision: several roundings of 2^-11 and 2^-8, of sums over many of them."""


def draw(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """Normal numbers, the same for each call with the same arguments."""
    random = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=random).to(dtype)


def outputs_and_gradients(function: Callable[..., Tensor | tuple[Tensor, ...]], inputs: list[Tensor]) -> list[Tensor]:
    """The outputs of a function, and the gradients of their sum in random directions."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    found = function(*inputs)
    outputs = list(found) if isinstance(found, tuple) else [found]
    directions = [draw(*out.shape, seed=7 + i).to(out.dtype) for i, out in enumerate(outputs)]
    return [*(out.detach() for out in outputs), *torch.autograd.grad(outputs, inputs, directions)]


def assert_the_same(kernel: Callable[..., object], plain: Callable[..., object], inputs: list[Tensor]) -> None:
    """The kernel in the inputs' precision gives what its plain statement gives of the same numbers in float64."""
    found = outputs_and_gradients(kernel, inputs)  # type: ignore[arg-type]
    expected = outputs_and_gradients(plain, [x.double() for x in inputs])  # type: ignore[arg-type]
    tolerance = TOLERANCE[inputs[0].dtype]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=tolerance, atol=tolerance)
