"""The kernel for GPUs in low precision: torch's attention over concatenated sequences of any length.

A thin adapter for `torch.nn.attention.varlen` (FlashAttention; torch 2.11 to 2.15), which supports neither dropout of
attention weights nor float32. Names carry shapes: T tokens, A heads, D head width.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

from bertwright.core.errors import MissingExtraError
from bertwright.examples.batch import Batch
from bertwright.model.config import VARLEN_CAPABILITY, NetworkConfig, unsupported_heads


class Varlen:
    """One fused call over all sequences, without padding; the host does not need to know their lengths.

    With a `window`, a token sees the tokens at most half of it away.
    """

    read_N = None

    def __init__(self, batch: Batch[Tensor], window: int | None = None) -> None:
        self.bounds = batch.cu_seqlens
        # An upper bound, since no sequence is longer than its row; the kernel uses it only to partition its work.
        self.longest = batch.max_row
        self.more: dict[str, Any] = {} if window is None else {"window_size": (window // 2, window // 2)}

    def reading(self, read_N: Tensor | None) -> Varlen:
        """Return this kernel, which needs the queries of all tokens."""
        return self

    def __call__(self, q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, dropout_p: float) -> Tensor:
        """Return the attended values [T, A, D]; `dropout_p` must be 0 (see `refusal`)."""
        assert not dropout_p
        if not len(v_TAD):
            return v_TAD
        from torch.nn.attention.varlen import varlen_attn

        bounds, longest = self.bounds, self.longest
        attended_TAD = varlen_attn(q_TAD, k_TAD, v_TAD, bounds, bounds, longest, longest, **self.more)
        assert isinstance(attended_TAD, Tensor)
        return attended_TAD


def refusal(device: torch.device, low_precision: bool, network: NetworkConfig) -> str:
    """Return why this kernel cannot compute the attention of a network, and what to do; "" if it can.

    Raises `MissingExtraError` if torch has no such attention, or if it lacks the network's windows.
    """
    if device.type != "cuda":
        return "is a kernel for GPUs, but this training runs on a CPU; set train.attention=auto"
    if not torch.version.hip and (has := torch.cuda.get_device_capability(device)) < VARLEN_CAPABILITY:
        return f"needs compute capability 8.0, but this GPU has {has[0]}.{has[1]}; set train.attention=padded"
    if not low_precision:
        return "computes only in bf16 or fp16; set train.precision=bf16, or train.attention=padded"
    if network.attention_probs_dropout_prob:
        return "does not support dropout of attention weights; set model.attention_dropout=0, or train.attention=padded"
    if wrong := unsupported_heads("varlen", network, "[model]"):
        return wrong
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        raise MissingExtraError(
            "train.attention = varlen needs torch 2.11 or newer. Install it, or set train.attention=padded."
        ) from None
    if any(network.windows) and "window_size" not in inspect.signature(varlen_attn).parameters:
        raise MissingExtraError(
            "model.kind = modern with train.attention = varlen needs attention windows, which torch "
            f"{torch.__version__} does not support there. Install torch 2.12 or newer, or set train.attention=padded."
        )
    return ""
