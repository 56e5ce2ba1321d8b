"""When our own attention kernel is refused; what it computes: `tests/kernels`, `tests/gpu/test_kernels.py`."""

import pytest
import torch
from tests.reference.batches import NUMBERS

from bertwright.core.errors import MissingExtraError
from bertwright.model.attention import triton
from bertwright.model.bert.network import BertConfig

GPU, NETWORK = torch.device("cuda"), BertConfig(**NUMBERS)


def test_what_it_cannot_do_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert triton.refusal(torch.device("cpu"), NETWORK).startswith("is a kernel for GPUs")
    monkeypatch.setattr(triton, "find_spec", lambda name: object())
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    assert triton.refusal(GPU, NETWORK) == ""
    with_dropout = BertConfig(**{**NUMBERS, "attention_probs_dropout_prob": 0.1})
    assert triton.refusal(GPU, with_dropout) == ""
    narrow = BertConfig(**{**NUMBERS, "num_attention_heads": 2})
    assert triton.refusal(GPU, narrow).startswith("supports heads whose width is a multiple of 8 and at most 128")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert (
        triton.refusal(GPU, NETWORK) == "needs compute capability 8.0, but this GPU has 7.5; set train.attention=padded"
    )


def test_without_triton_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton, "find_spec", lambda name: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    with pytest.raises(
        MissingExtraError, match=r"needs Triton, which comes with torch for CUDA.*train\.attention=padded"
    ):
        triton.refusal(GPU, NETWORK)
