"""What a kernel is, and how one is bound to a batch.

A kernel is bound to one batch's sequences and rows, so that its indices are computed once and serve every layer; then
all kernels have one signature, `(q_TAD, k_TAD, v_TAD, dropout_p) -> TAD`, and give the same numbers. Bound with a
window it is local attention: a token sees those at most half the window away (Beltagy et al. 2020 §3.1), that distance
included, as in transformers' ModernBERT.

Names carry shapes: T tokens, A heads, D head width.
"""

from __future__ import annotations

from typing import Protocol, assert_never

from torch import Tensor

from bertwright.examples.batch import Batch
from bertwright.model.config import Kernel


class Attend(Protocol):
    """Attention within each sequence of one batch: softmax(q·k / √D)·v, dropping attention weights with `dropout_p`."""

    def __call__(self, q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, dropout_p: float) -> Tensor:
        """The attended values, [T, A, D]."""
        ...


def bind(kernel: Kernel, batch: Batch[Tensor], window: int | None = None) -> Attend:
    """`kernel` for the sequences of one batch; keys further away than half the `window` (tokens) are not seen."""
    match kernel:
        case "sequences":
            # Imported where it is chosen: a kernel may need a newer torch than the rest.
            from bertwright.model.attention.sequences import Sequences

            return Sequences(batch, window)
        case "padded":
            from bertwright.model.attention.padded import Padded

            return Padded(batch, window)
        case "varlen":
            from bertwright.model.attention.varlen import Varlen

            return Varlen(batch, window)
        case _:
            assert_never(kernel)
