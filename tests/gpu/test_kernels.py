"""Our own kernels on a GPU: the numbers of their plain statements, with dropout, and a training."""

import json
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import pytest
import torch
from tests.conftest import Prepared
from tests.golden.training.settings import train
from tests.rows import each_row
from torch import Tensor

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU"),
    # What torch warns of differs by GPU and version: these tests ask for numbers.
    pytest.mark.filterwarnings("default::UserWarning:torch.*"),
]
TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 6e-2}


def draw(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator("cuda").manual_seed(seed), device="cuda").to(dtype)


def outputs_and_gradients(function: Callable[..., Tensor], inputs: list[Tensor]) -> list[Tensor]:
    inputs = [x.clone().requires_grad_() for x in inputs]
    out = function(*inputs)
    return [out.detach(), *torch.autograd.grad(out, inputs, draw(*out.shape, seed=7).to(out.dtype))]


def assert_the_same(kernel: Callable[..., Tensor], plain: Callable[..., Tensor], inputs: list[Tensor]) -> None:
    found, expected = outputs_and_gradients(kernel, inputs), outputs_and_gradients(plain, [x.double() for x in inputs])
    tolerance = TOLERANCE[inputs[0].dtype]
    for one, other in zip(found, expected, strict=True):
        # Relative to the largest: gradients of parameters are sums over all rows.
        limit = tolerance * max(1.0, float(other.abs().max()))
        torch.testing.assert_close(one.double(), other, rtol=tolerance, atol=limit)


@each_row("reach", [None, 8, 64])
@each_row("p", [0.0, 0.1])
@each_row("dtype", [torch.bfloat16, torch.float16, torch.float32])
@each_row("lengths", [[100, 0, 128, 1], [512, 9, 200, 0]])
@each_row("width", [64, 96])
def test_attention(width: int, lengths: list[int], dtype: torch.dtype, p: float, reach: int | None) -> None:
    from bertwright.model.kernels.attention import Sequences, attention, plain_attention
    from bertwright.model.kernels.counter import Mask

    bounds = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32, device="cuda")
    within, mask = Sequences(bounds, max(lengths), reach), Mask(torch.tensor([12_345], device="cuda"), p)
    inputs = [draw(sum(lengths), 3, width, dtype=dtype, seed=seed) for seed in range(3)]
    assert_the_same(lambda *x: attention(*x, within, mask), lambda *x: plain_attention(*x, within, mask), inputs)


@each_row("p", [0.0, 0.1])
@each_row("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_norms(dtype: torch.dtype, p: float) -> None:
    from bertwright.model.kernels.counter import Mask
    from bertwright.model.kernels.norm import Norm, add_norm, plain_add_norm

    mask, shapes = Mask(torch.tensor([12_345], device="cuda"), p), [(3000, 768), (768,), (3000, 768), (768,), (768,)]
    sides = (
        lambda x, b, r, weight, shift, rule=rule: rule(x, b, r, Norm(weight, shift, 1e-5), mask)
        for rule in (add_norm, plain_add_norm)
    )
    assert_the_same(*sides, [draw(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(shapes)])


@each_row("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_bias_and_gelu(dtype: torch.dtype) -> None:
    from bertwright.model.kernels.gelu import bias_gelu, plain_bias_gelu

    assert_the_same(bias_gelu, plain_bias_gelu, [draw(3000, 3072, dtype=dtype), draw(3072, dtype=dtype)])


@pytest.mark.parametrize("graph", ["eager", "compiled"])
@pytest.mark.parametrize("ours", [{"attention": "triton"}, {"kernels": "triton"}], ids=["attention", "kernels"])
def test_training_with_our_own_follows_training_with_torchs(
    prepared: Prepared, tmp_path: Path, ours: dict[str, str], graph: str
) -> None:
    settings = {"device": "cuda", "precision": "bf16", "attention": "padded"}
    data = (prepared.examples, prepared.vocab)
    plain = train("adamw-sequences", *data, tmp_path / "torch", **settings)
    own = train("adamw-sequences", *data, tmp_path / "ours", **{**settings, **ours, "graph": graph})
    rows = [
        [json.loads(line) for line in (done.path / "metrics.jsonl").read_text().splitlines()] for done in (plain, own)
    ]
    for one, other in zip(*rows, strict=True):
        assert one["batch"] == other["batch"]
        assert other["mlm_loss"] == pytest.approx(one["mlm_loss"], rel=0.05)
