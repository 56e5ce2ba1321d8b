"""The kernel for GPUs of our own: sequences of any length, windows, and dropout of attention weights, in any precision.

Binds `model.kernels.attention`, which needs Triton and is made for up to about 1,024 tokens a sequence. Names carry
shapes: T tokens, A heads, D head width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bertwright.examples.batch import Batch
from bertwright.model.config import NetworkConfig, unsupported_heads


class Triton:
    """One fused call over all sequences, without padding; the host does not need to know their lengths.

    With a `window`, a token sees the tokens at most half of it away.
    """

    read_N = None

    def __init__(self, batch: Batch[Tensor], window: int | None = None) -> None:
        from bertwright.model.kernels.attention import Sequences

        # No sequence is longer than its row. Programs of a sequence that is shorter end at once.
        self.sequences = Sequences(batch.cu_seqlens, batch.max_row, None if window is None else window // 2)

    def reading(self, read_N: Tensor | None) -> Triton:
        """Return this kernel, which needs the queries of all tokens."""
        return self

    def __call__(self, q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, dropout_p: float) -> Tensor:
        """Return the attended values [T, A, D]."""
        if not len(v_TAD):
            return v_TAD
        from bertwright.model.kernels.attention import attention
        from bertwright.model.kernels.counter import draw_mask

        return attention(q_TAD, k_TAD, v_TAD, self.sequences, draw_mask(dropout_p, q_TAD.device))


def refusal(device: torch.device, network: NetworkConfig) -> str:
    """Return why this kernel cannot compute the attention of a network, and what to do; "" if it can.

    Raises `MissingExtraError` if there is no Triton.
    """
    from bertwright.model.kernels.needs import missing_for

    missing = missing_for("train.attention", device, on_a_cpu="auto", instead="padded")
    return missing or unsupported_heads("triton", network, "[model]")
