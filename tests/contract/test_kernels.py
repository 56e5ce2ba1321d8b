"""Every attention kernel against plain attention in float64: gradients, windows, packed rows, sequences of length 0."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.attention import attention
from tests.reference.kernels import KERNELS
from tests.reference.sequences import sequences
from tests.rows import each_row
from torch import Tensor

from bertwright.model.attention.kernel import bind, read
from bertwright.model.config import Kernel

WINDOWS = (None, 1, 4, 7, 200)
"""No window, only the token itself, and windows shorter and longer than the sequences."""


def qkv(tokens: int) -> list[Tensor]:
    random = torch.Generator().manual_seed(0)
    return [torch.randn(tokens, 3, 8, generator=random, dtype=torch.float64, requires_grad=True) for _ in range(3)]


def outputs_and_gradients(attend: Callable[..., Tensor], tokens: int, dropout_p: float = 0.0) -> list[Tensor]:
    direction = torch.randn(tokens, 3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    inputs = qkv(tokens)
    out = attend(*inputs, dropout_p)
    return [out, *torch.autograd.grad((out * direction).sum(), inputs)]


def plain(lengths: list[int], window: int | None = None) -> list[Tensor]:
    """Attention of every sequence separately, by the formula."""

    def scores(q: Tensor, k: Tensor) -> Tensor:
        place = torch.arange(len(q))
        far = (place[:, None] - place).abs() > (len(q) if window is None else window // 2)
        return (torch.einsum("iad,jad->aij", q, k) / q.shape[-1] ** 0.5).masked_fill(far, -torch.inf)

    def attend(q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, dropout_p: float) -> Tensor:
        cut = zip(*(x_TAD.split(lengths) for x_TAD in (q_TAD, k_TAD, v_TAD)), strict=True)
        weights = (scores(q, k).softmax(-1) for q, k, _ in cut)
        values = v_TAD.split(lengths)
        return torch.cat([torch.einsum("aij,jad->iad", w, v) for w, v in zip(weights, values, strict=True)])

    return outputs_and_gradients(attend, sum(lengths))


@pytest.mark.parametrize("kernel", KERNELS)
@each_row("window", WINDOWS)
@each_row("lengths", [[5], [4, 4, 4], [3, 7, 3, 1, 7], [6, 2, 0, 0], [0, 5, 0, 5], [2, 2, 9, 9]])
def test_it_follows_the_plain_rule(kernel: Kernel, lengths: list[int], window: int | None) -> None:
    inputs, batch = qkv(sum(lengths)), sequences(lengths)
    got = bind(kernel, batch, window)(*inputs, 0.0)
    expected = attention(*(x.detach().numpy() for x in inputs), batch.cu_seqlens.tolist(), window)
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=30, derandomize=True)
@given(
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=12).filter(any),
    slack=st.integers(0, 5),
    window=st.sampled_from(WINDOWS),
)
def test_its_gradients_are_those_of_the_formula(
    kernel: Kernel, lengths: list[int], slack: int, window: int | None
) -> None:
    found = outputs_and_gradients(bind(kernel, sequences(lengths, slack=slack), window), sum(lengths))
    for one, other in zip(found, plain(lengths, window), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
@each_row("window", [4, 128, 141])
def test_windows_in_sequences_of_several_chunks(kernel: Kernel, window: int) -> None:
    lengths = [300, 140, 129, 300, 128]
    found = outputs_and_gradients(bind(kernel, sequences(lengths), window), sum(lengths))
    for one, other in zip(found, plain(lengths, window), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
@each_row("window", [16, 17, 30, 128])
@each_row("dropout_p", [0.0, 1e-14])
def test_windows_of_long_sequences_and_of_packed_rows(kernel: Kernel, window: int, dropout_p: float) -> None:
    """Lengths beyond the window and beyond one processed block; a dropout this small drops nothing."""
    lengths = [150, 9, 65, 66, 129, 1, 200]
    expected = plain(lengths, window)
    for rows in (lengths, [159, 131, 330]):
        found = outputs_and_gradients(bind(kernel, sequences(lengths, rows), window), sum(lengths), dropout_p)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=30, derandomize=True)
@given(
    rows=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=1, max_size=5),
    slack=st.integers(0, 5),
    window=st.sampled_from(WINDOWS),
)
def test_packed_rows_change_nothing(kernel: Kernel, rows: list[list[int]], slack: int, window: int | None) -> None:
    """Several sequences in a row, block by block, give the outputs and gradients of each sequence separately."""
    lengths = [n for row in rows for n in row]
    batch = sequences(lengths, [sum(row) for row in rows], slack)
    found = outputs_and_gradients(bind(kernel, batch, window), sum(lengths))
    for one, other in zip(found, plain(lengths, window), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("window", [None, 4])
@settings(max_examples=50, derandomize=True)
@given(lengths=st.lists(st.integers(0, 12), min_size=1, max_size=12).filter(any), data=st.data())
def test_the_values_of_read_tokens_are_those_of_all_with_their_gradients(
    kernel: Kernel, window: int | None, lengths: list[int], data: st.DataObject
) -> None:
    """In any order, the same token twice, all of them, none, or none of some sequences."""
    read_N = torch.tensor(data.draw(st.lists(st.integers(0, sum(lengths) - 1), max_size=40)), dtype=torch.int64)
    attend = bind(kernel, sequences(lengths), window)
    reading = attend.reading(read_N)
    direction = torch.randn(len(read_N), 3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def some(q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor) -> Tensor:
        values = reading(read(q_TAD, reading.read_N), k_TAD, v_TAD, 0.0)
        return read(values, read_N) if reading.read_N is None else values

    inputs = qkv(sum(lengths))
    found, every = some(*inputs), attend(*inputs, 0.0).index_select(0, read_N)
    torch.testing.assert_close(found, every, rtol=0, atol=1e-12)
    gradients = (torch.autograd.grad((out * direction).sum(), inputs) for out in (found, every))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("window", [None, 4])
def test_an_empty_batch_has_no_values(kernel: Kernel, window: int | None) -> None:
    attend, none = bind(kernel, sequences([0]), window), torch.zeros(0, dtype=torch.int64)
    assert attend(*qkv(0), 0.0).shape == (0, 3, 8)
    assert attend.reading(none)(*qkv(0), 0.0).shape == (0, 3, 8)
