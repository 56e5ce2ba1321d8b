import pytest
import torch
from tests.reference.sequences import sequences
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.model.attention.padded import Padded
from bertwright.model.attention.sequences import Sequences
from bertwright.model.config import kernel_for


def test_one_call_per_distinct_length() -> None:
    mixed, by_length = (
        Sequences(sequences(lengths)).layout(False) for lengths in ([3, 7, 3, 0, 7, 2], [7, 7, 2, 3, 3])
    )
    assert [run[:2] for run in mixed.runs] == [(1, 2), (2, 3), (2, 7)] and mixed.order is not None
    assert [run[:2] for run in by_length.runs] == [(2, 7), (1, 2), (2, 3)] and by_length.order is None


def test_in_low_precision_similar_lengths_share_a_call() -> None:
    lengths = [66, 3, 7, 30, 8, 0, 27, 100, 61, 7]
    layout = Sequences(sequences(lengths)).layout(True)
    assert [run[:2] for run in layout.runs] == [(4, 8), (2, 30), (1, 61), (1, 66), (1, 100)]
    assert layout.order is not None and layout.inverse is not None
    assert layout.order[layout.inverse].tolist() == list(range(sum(lengths)))
    padding = 1 - sum(lengths) / len(layout.order)
    assert 0 < padding < 0.06
    assert Sequences(sequences([7, 7, 30, 30])).layout(True).order is None, "equal lengths are not copied"


@each_row("window", [None, 24])
@each_row("read", [False, True])
def test_low_precision_gives_the_values_and_gradients_of_float64(window: int | None, read: bool) -> None:
    torch.manual_seed(0)
    lengths, heads, width = [66, 3, 7, 30, 8, 27, 130, 140, 61, 7], 2, 16  # two of them share three chunks
    batch = sequences(lengths)
    firsts = batch.cu_seqlens[:-1].long()
    chosen = read and window is None
    exact = [torch.randn(sum(lengths), heads, width).bfloat16().double().requires_grad_() for _ in range(3)]
    low = [x.detach().bfloat16().requires_grad_() for x in exact]
    kernel = Sequences(batch, window)
    kernel = kernel.reading(firsts) if chosen else kernel
    out = kernel(low[0][firsts] if chosen else low[0], low[1], low[2], 0.0)
    wanted = attended(exact, lengths, window)
    wanted = wanted[firsts] if chosen else wanted
    torch.testing.assert_close(out.double(), wanted, atol=0.03, rtol=0.02)
    weights = torch.randn_like(wanted).bfloat16()
    out.backward(weights)
    wanted.backward(weights.double())
    for one, other in zip(low, exact, strict=True):
        assert one.grad is not None and other.grad is not None and one.grad.isfinite().all()
        torch.testing.assert_close(one.grad.double(), other.grad, atol=0.06, rtol=0.05)


def attended(qkv: list[torch.Tensor], lengths: list[int], window: int | None) -> torch.Tensor:
    """softmax(q·k / √D)·v of each sequence by itself, written out."""
    parts = []
    for q, k, v in zip(*(x.split(lengths) for x in qkv), strict=True):
        scores = torch.einsum("qad,kad->aqk", q, k) / q.shape[-1] ** 0.5
        if window is not None:
            place = torch.arange(len(q))
            scores = scores.masked_fill((place[:, None] - place).abs() > window // 2, -torch.inf)
        parts.append(torch.einsum("aqk,kad->qad", scores.softmax(-1), v))
    return torch.cat(parts)


def test_a_gpu_is_not_kept_waiting_for_lengths() -> None:
    assert kernel_for("cpu") == "sequences" and kernel_for("cuda") == "padded"


@each_row("kernel", [Padded, Sequences])
def test_attention_drops_weights_without_bias(kernel: type[Padded] | type[Sequences]) -> None:
    """With v = 1 every output is the sum of the kept weights / (1 - p): 1 on average, and not always 1."""
    torch.manual_seed(0)
    q = torch.randn(400, 2, 8)
    out = kernel(sequences([200, 200]))(q, q * 0, torch.ones(400, 2, 8), 0.25)
    assert abs(float(out.mean()) - 1) < 0.01
    assert float(out.std()) > 0.02


def test_padded_refuses_a_sequence_longer_than_its_rows() -> None:
    with pytest.raises(DataError, match="a row of 9 tokens in a batch with max_row = 8"):
        Padded(sequences([3, 9], slack=-1))
