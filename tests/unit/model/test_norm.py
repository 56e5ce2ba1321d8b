"""Layer norms compute in float32 and return the dtype of the stream, which is bfloat16 under autocast to it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import pytest
import torch
from tests.contract.test_networks import built, families
from tests.reference.batches import random_batch
from tests.rows import each_row
from torch import Tensor, nn

from bertwright.model import norm
from bertwright.model.norm import LayerNorm
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.terms import cross_entropy_sum

LENGTHS = [40, 128, 100, 7]


def low(dtype: torch.dtype = torch.bfloat16, enabled: bool = True) -> torch.autocast:
    return torch.autocast("cpu", dtype, enabled=enabled)


@each_row("bias", [True, False])
@each_row("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bits_are_normed_as_in_float64(dtype: torch.dtype, bias: bool) -> None:
    """Over many rows: torch sums the gradients of 16 bits in 16 bits, and is 5 % off."""
    random = torch.Generator().manual_seed(0)
    module = LayerNorm(64, bias=bias)
    x, direction = (torch.randn(8192, 64, generator=random).to(dtype) for _ in range(2))
    found, expected = [], []
    for numbers, network, given in ((found, module, x), (expected, deepcopy(module).double(), x.double())):
        leaf = given.clone().requires_grad_()
        out = network(leaf)
        assert out.dtype == given.dtype
        numbers += [out.detach(), *torch.autograd.grad(out, [leaf, *network.parameters()], direction.to(given.dtype))]
    for one, other in zip(found, expected, strict=True):
        rounding = torch.finfo(dtype).eps / 2 if one.dtype == dtype else 1e-5
        assert float((one.double() - other).norm() / other.norm()) < rounding


@each_row("dtype", [torch.float32, torch.float64])
def test_wider_numbers_are_normed_as_by_torch(dtype: torch.dtype) -> None:
    module, x = LayerNorm(8).to(dtype), torch.linspace(-1, 3, 24, dtype=dtype).view(3, 8)
    assert torch.equal(module(x), nn.LayerNorm.forward(module, x))


@each_row(
    "autocast, expected",
    [(torch.bfloat16, torch.bfloat16), (torch.float16, torch.float32), (None, torch.float32)],
)
def test_the_stream_is_bfloat16_under_autocast_to_it(autocast: torch.dtype | None, expected: torch.dtype) -> None:
    with low(autocast or torch.bfloat16, enabled=autocast is not None):
        assert LayerNorm(8)(torch.zeros(2, 8)).dtype == expected


@families
def test_between_layers_it_stays_bfloat16_with_its_gradients(family: Any) -> None:
    model, seen = built(family).train(), list[torch.dtype]()

    def record(module: nn.Module, given: Any, out: Tensor) -> None:
        seen.append(out.dtype)
        out.register_hook(lambda gradient: seen.append(gradient.dtype))

    for layer in model.encoder.layers:
        layer.register_forward_hook(record)
    with low():
        model(random_batch(LENGTHS))[0].float().logsumexp(-1).sum().backward()
    assert seen == [torch.bfloat16] * 2 * len(model.encoder.layers)


@contextmanager
def stream(rule: Callable[[Tensor], torch.dtype]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(norm, "stream_dtype", rule)
        yield


def gradients(model: PreTrainingModel, lengths: list[int], enabled: bool = False) -> Tensor:
    batch = random_batch(lengths)
    with low(enabled=enabled):
        loss = cross_entropy_sum(model(batch)[0], batch.labels, batch.weights)
    weights = [p for name, p in model.named_parameters() if not name.startswith("nsp") and "pooler" not in name]
    return torch.cat([g.double().flatten() for g in torch.autograd.grad(loss, weights)])


@families
def test_its_rounding_is_of_the_size_of_that_of_products(family: Any) -> None:
    """Against float64: about twice the error of bfloat16 products alone, and a hundredth of what batches differ by."""
    model = built(family)
    exact = gradients(deepcopy(model).double(), LENGTHS)

    def error(found: Tensor) -> float:
        return float((found - exact).norm() / exact.norm())

    own = error(gradients(model, LENGTHS, enabled=True))
    with stream(lambda x: torch.promote_types(x.dtype, torch.float32)):
        products = error(gradients(model, LENGTHS, enabled=True))
    assert products < own < 4 * products
    assert own < 0.03 * error(gradients(model, LENGTHS[::-1]))
