"""When our own kernels are refused; what they compute: `tests/kernels`, `tests/gpu/test_kernels.py`."""

import pytest
import torch
from tests.reference.batches import NUMBERS

from bertwright.core.errors import MissingExtraError
from bertwright.model import fused
from bertwright.model.attention import triton
from bertwright.model.bert.network import BertConfig
from bertwright.model.kernels import needs

GPU, NETWORK = torch.device("cuda"), BertConfig(**NUMBERS)


def test_what_they_cannot_do_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert triton.refusal(torch.device("cpu"), NETWORK).startswith("is for GPUs")
    assert fused.refusal(torch.device("cpu")) == (
        "is for GPUs, but this training runs on a CPU; set train.kernels=torch"
    )
    monkeypatch.setattr(needs, "find_spec", lambda name: object())
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    assert triton.refusal(GPU, NETWORK) == fused.refusal(GPU) == ""
    with_dropout = BertConfig(**{**NUMBERS, "attention_probs_dropout_prob": 0.1})
    assert triton.refusal(GPU, with_dropout) == ""
    narrow = BertConfig(**{**NUMBERS, "num_attention_heads": 2})
    assert triton.refusal(GPU, narrow).startswith("supports heads whose width is a multiple of 8 and at most 128")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    old = "needs compute capability 8.0, but this GPU has 7.5; set train."
    assert triton.refusal(GPU, NETWORK) == f"{old}attention=padded"
    assert fused.refusal(GPU) == f"{old}kernels=torch"


def test_without_triton_they_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "find_spec", lambda name: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    needed = r"needs Triton, which comes with torch for CUDA.*train"
    with pytest.raises(MissingExtraError, match=rf"{needed}\.attention=padded"):
        triton.refusal(GPU, NETWORK)
    with pytest.raises(MissingExtraError, match=rf"{needed}\.kernels=torch"):
        fused.refusal(GPU)
