import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.attention import attention

from bertwright.core.errors import DataError, RecipeError
from bertwright.model.attention import Kernel, Padded, Sequences, bind, kernel_for


def qkv(tokens: int, seed: int = 0) -> list[torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    return [torch.randn(tokens, 3, 8, generator=random, dtype=torch.float64, requires_grad=True) for _ in range(3)]


def cumulative(lengths: list[int]) -> torch.Tensor:
    return torch.tensor([0, *np.cumsum(lengths)], dtype=torch.int32)


@pytest.mark.parametrize("kernel", ["sequences", "padded"])
@pytest.mark.parametrize("lengths", [[5], [4, 4, 4], [3, 7, 3, 1, 7], [6, 2, 0, 0], [0, 5, 0, 5], [2, 2, 9, 9]])
def test_kernel_follows_the_plain_rule(kernel: Kernel, lengths: list[int]) -> None:
    inputs = qkv(sum(lengths))
    bounds = cumulative(lengths)
    got = bind(kernel, bounds, bounds, max(lengths))(*inputs, 0.0)
    expected = attention(*(x.detach().numpy() for x in inputs), bounds.tolist())
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=0, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=12).filter(any), st.integers(0, 5))
def test_kernels_agree_with_gradients(lengths: list[int], slack: int) -> None:
    bounds, results = cumulative(lengths), []
    direction = torch.randn(sum(lengths), 3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for attend in (Sequences(bounds), Padded(bounds, bounds, max(lengths) + slack)):
        inputs = qkv(sum(lengths))
        out = attend(*inputs, 0.0)
        results.append([out, *torch.autograd.grad((out * direction).sum(), inputs)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=1, max_size=5), st.integers(0, 5))
def test_packed_rows_change_nothing(rows: list[list[int]], slack: int) -> None:
    """Several sequences in a row, block by block: the outputs and gradients of every sequence by itself."""
    lengths, totals = [n for row in rows for n in row], [sum(row) for row in rows]
    bounds, results = cumulative(lengths), []
    direction = torch.randn(sum(lengths), 3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for attend in (Sequences(bounds), Padded(bounds, cumulative(totals), max(totals) + slack)):
        inputs = qkv(sum(lengths))
        out = attend(*inputs, 0.0)
        results.append([out, *torch.autograd.grad((out * direction).sum(), inputs)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


def test_one_call_per_distinct_length_and_no_gathering_where_equal_lengths_lie_together() -> None:
    mixed, sorted_by_length = Sequences(cumulative([3, 7, 3, 0, 7, 2])), Sequences(cumulative([7, 7, 2, 3, 3]))
    assert mixed.runs == [(1, 2), (2, 3), (2, 7)] and mixed.order is not None
    assert sorted_by_length.runs == [(2, 7), (1, 2), (2, 3)] and sorted_by_length.order is None


def test_attention_dropout_needs_the_padded_kernel() -> None:
    assert kernel_for(0.0, "cpu") == "sequences" and kernel_for(0.1, "cpu") == "padded"


def test_a_gpu_is_not_kept_waiting_for_lengths() -> None:
    assert kernel_for(0.0, "cuda") == kernel_for(0.1, "cuda") == "padded"
    with pytest.raises(RecipeError, match="cannot drop attention weights"):
        Sequences(cumulative([4]))(*qkv(4), 0.1)


def test_padded_attention_drops_weights_without_bias() -> None:
    """With v = 1 every output is the sum of the kept weights / (1 - p): 1 on average, and not always 1."""
    torch.manual_seed(0)
    q = torch.randn(400, 2, 8)
    halves = cumulative([200, 200])
    out = Padded(halves, halves, 200)(q, q * 0, torch.ones(400, 2, 8), 0.25)
    assert abs(float(out.mean()) - 1) < 0.01
    assert float(out.std()) > 0.02


def test_padded_refuses_a_sequence_longer_than_it_was_told() -> None:
    with pytest.raises(DataError, match="a row of 9 tokens in a batch whose max_row is 8"):
        Padded(cumulative([3, 9]), cumulative([3, 9]), 8)
