"""What torch's attention for GPUs is asked for, and when it is refused; what it answers: `tests/gpu/test_varlen.py`."""

from typing import Any

import pytest
import torch
from tests.reference.attention import attention
from tests.reference.batches import NUMBERS
from tests.reference.sequences import sequences
from tests.rows import each_row
from torch import Tensor
from torch.nn.attention import varlen as torch_varlen

from bertwright.core.errors import MissingExtraError
from bertwright.model.attention.kernel import bind
from bertwright.model.attention.varlen import refusal
from bertwright.model.bert.network import BertConfig
from bertwright.model.modern.network import ModernConfig

GPU, CPU = torch.device("cuda"), torch.device("cpu")


@each_row("window", [None, 4])
def test_it_gets_the_sequences_of_the_batch(monkeypatch: pytest.MonkeyPatch, window: int | None) -> None:
    """A CPU has no such kernel: in its place stands the formula, called as torch's documentation says."""

    def formula(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        cu_seq_q: Tensor,
        cu_seq_k: Tensor,
        max_q: int,
        max_k: int,
        **more: Any,
    ) -> Tensor:
        assert cu_seq_q.dtype == cu_seq_k.dtype == torch.int32 and max_q == max_k >= cu_seq_q.diff().max()
        left, right = more.get("window_size", (-1, -1))
        assert left == right
        width = None if left < 0 else 2 * left
        return torch.from_numpy(attention(query.numpy(), key.numpy(), value.numpy(), cu_seq_q.tolist(), width))

    monkeypatch.setattr(torch_varlen, "varlen_attn", formula)
    batch = sequences([7, 3, 12], [10, 12])
    qkv = [torch.randn(22, 2, 4, dtype=torch.float64) for _ in range(3)]
    torch.testing.assert_close(bind("varlen", batch, window)(*qkv, 0.0), bind("padded", batch, window)(*qkv, 0.0))
    empty = [torch.zeros(0, 2, 4)] * 3
    assert bind("varlen", sequences([0]), window)(*empty, 0.0).shape == (0, 2, 4)


@pytest.fixture
def ampere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU of compute capability 8.0."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))


def bert(**values: Any) -> BertConfig:
    return BertConfig(**{**NUMBERS, **values})


def modern(layers: int = 2) -> ModernConfig:
    return ModernConfig(
        vocab_size=61, hidden_size=24, num_hidden_layers=layers, num_attention_heads=3, intermediate_size=40
    )


@pytest.mark.usefixtures("ampere")
def test_what_it_cannot_do_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(CPU, True, bert()).startswith("is a kernel for GPUs")
    assert refusal(GPU, False, bert()).startswith("computes only in bf16 or fp16")
    assert refusal(GPU, True, bert(attention_probs_dropout_prob=0.1)).startswith("does not support dropout of att")
    assert refusal(GPU, True, bert(num_attention_heads=2)).startswith("supports heads whose width is a multiple of 8 ")
    assert refusal(GPU, True, bert()) == refusal(GPU, True, modern()) == ""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    said = "needs compute capability 8.0, but this GPU has 7.5; set train.attention=padded"
    assert refusal(GPU, True, bert()) == said


@pytest.mark.usefixtures("ampere")
def test_an_older_torch_has_no_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_varlen, "varlen_attn", lambda query, key, value, is_causal=False: query)
    assert refusal(GPU, True, bert()) == "" and refusal(GPU, True, modern(layers=1)) == "", "its layer is global"
    with pytest.raises(MissingExtraError, match=r"Install torch 2\.12 or newer, or set train\.attention=padded"):
        refusal(GPU, True, modern())
