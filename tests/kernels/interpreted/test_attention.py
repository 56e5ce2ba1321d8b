"""Attention by our own kernel: numbers, gradients, windows, sequences of length 0, dropout, and torch.compile."""

from itertools import accumulate

import pytest
import torch
from tests.kernels.interpreted.numbers import TOLERANCE, assert_the_same, draw, outputs_and_gradients
from tests.reference.sequences import sequences
from tests.rows import each_row
from torch import Tensor

from bertwright.model.attention.kernel import bind
from bertwright.model.kernels.attention import Sequences, attention, attention_forward, plain_attention
from bertwright.model.kernels.counter import Mask

SHORT, LONG = [5, 0, 31, 16, 0], [70, 0, 3]
"""Within one block of float32, and in several."""


def qkv(tokens: int, width: int = 32, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    return [draw(tokens, 2, width, dtype=dtype, seed=seed) for seed in range(3)]


def mask(p: float) -> Mask:
    return Mask(torch.tensor([987_654_321_987]), p)


def compare(lengths: list[int], inputs: list[Tensor], reach: int | None, p: float) -> None:
    bounds = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32)
    within = Sequences(bounds, max(lengths), reach)
    assert_the_same(lambda *x: attention(*x, within, mask(p)), lambda *x: plain_attention(*x, within, mask(p)), inputs)


@each_row("reach", [None, 0, 9])
@each_row("p", [0.0, 0.3])
@each_row("lengths", [SHORT, LONG])
def test_outputs_and_gradients_are_those_of_the_formula(lengths: list[int], reach: int | None, p: float) -> None:
    """With dropout they agree only if forward and backward drop what the plain statement drops."""
    compare(lengths, qkv(sum(lengths)), reach, p)


@each_row("width", [8, 48, 96, 128])
def test_heads_of_any_width(width: int) -> None:
    compare([9, 33], qkv(42, width), None, 0.1)


@each_row("dtype", [torch.float16, torch.bfloat16])
@each_row("lengths", [[5, 0, 33], [130]])
def test_low_precision_accumulates_in_float32(dtype: torch.dtype, lengths: list[int]) -> None:
    compare(lengths, qkv(sum(lengths), dtype=dtype), 64, 0.1)


def test_queries_keys_and_values_may_be_parts_of_one_tensor() -> None:
    """As a single product gives them: elements of a head are adjacent, heads and tokens are not."""
    whole, within = draw(20, 3, 2, 32), Sequences(torch.tensor([0, 12, 20], dtype=torch.int32), 12)
    found = attention(*whole.unbind(1), within, mask(0.2))
    apart = attention(*(x.contiguous() for x in whole.unbind(1)), within, mask(0.2))
    torch.testing.assert_close(found, apart, rtol=0, atol=0)


@each_row("window", [None, 1, 16])
@each_row("lengths, rows", [([40, 0, 3], [40, 0, 3]), ([9, 20, 3], [32]), ([4, 4, 4], [8, 4])])
def test_it_is_bound_to_a_batch_like_the_others(lengths: list[int], rows: list[int], window: int | None) -> None:
    batch, inputs = sequences(lengths, rows, slack=2), qkv(sum(lengths))
    found = outputs_and_gradients(lambda *x: bind("triton", batch, window)(*x, 0.0), inputs)
    padded = bind("padded", batch, window)
    expected = outputs_and_gradients(lambda *x: padded(*x, 0.0), [x.double() for x in inputs])
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=0, atol=TOLERANCE[torch.float32])


def test_an_empty_batch_has_no_values() -> None:
    assert bind("triton", sequences([0]))(*qkv(0), 0.1).shape == (0, 2, 32)


def test_each_call_draws_another_mask_from_the_generator_of_torch() -> None:
    batch, inputs = sequences([30]), qkv(30)
    attend = bind("triton", batch)

    def drawn(seed: int) -> list[Tensor]:
        torch.manual_seed(seed)
        return [attend(*inputs, 0.5) for _ in range(2)]

    (first, second), again, other = drawn(0), drawn(0), drawn(1)
    assert torch.equal(first, again[0]) and torch.equal(second, again[1])
    assert not torch.equal(first, second) and not torch.equal(first, other[0])


def test_weights_are_dropped_at_their_rate_and_scaled() -> None:
    """Values of one in a key each, and equal scores, show the weights themselves."""
    heads, length, p = 2, 32, 0.25
    zeros, ones = torch.zeros(length, heads, length), torch.eye(length)[:, None].repeat(1, heads, 1)
    bounds = torch.tensor([0, length], dtype=torch.int32)
    weights = attention(zeros, zeros, ones, Sequences(bounds, length), mask(p)) * length
    kept = weights > 0
    torch.testing.assert_close(weights[kept], torch.full_like(weights[kept], 1 / (1 - p)))
    assert abs(kept.float().mean() - (1 - p)) < 4 * (p * (1 - p) / kept.numel()) ** 0.5
    assert not torch.equal(kept[:, 0], kept[:, 1])


@pytest.mark.filterwarnings("ignore::UserWarning:torch.*")
def test_a_compiler_passes_it_without_a_break() -> None:
    """With dropout, too: the seed is drawn inside the graph."""
    torch._dynamo.reset()
    batch, inputs = sequences([12, 8]), qkv(20)

    def step(*x: Tensor) -> Tensor:
        return bind("triton", batch, 8)(*x, 0.2) * 2

    torch.manual_seed(0)
    found = outputs_and_gradients(torch.compile(step, fullgraph=True, backend="aot_eager"), inputs)
    torch.manual_seed(0)
    for one, other in zip(found, outputs_and_gradients(step, inputs), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.filterwarnings("ignore::UserWarning:torch.*")
def test_its_operator_is_registered_as_torch_requires() -> None:
    bounds = torch.tensor([0, 5, 9], dtype=torch.int32)
    inputs = (*(x.requires_grad_() for x in qkv(9, 16)), bounds, torch.tensor([3]), 5, -1, 0.1)
    torch.library.opcheck(attention_forward, inputs)
