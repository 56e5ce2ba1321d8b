"""The attention kernel interface, and binding of a kernel to a batch.

A kernel is bound to the sequences and rows of one batch, so that its indices are computed once and used by every layer.
After that, all kernels have the same signature, `(q_TAD, k_TAD, v_TAD, dropout_p) -> TAD`, and return the same numbers.
In the last layer, where few tokens are read, a kernel may take the queries of these tokens alone (`Attend.reading`).
With a window, a kernel computes local attention: a token sees the tokens at most half the window away (Beltagy et al.
2020 §3.1), including that distance, as in transformers' ModernBERT.

Names carry shapes: T tokens, N tokens that are read, Q queries (T, or N), A heads, D head width.
"""

from __future__ import annotations

from typing import Protocol, assert_never

from torch import Tensor

from bertwright.examples.batch import Batch
from bertwright.model.config import Kernel


class Attend(Protocol):
    """Attention within each sequence of one batch: softmax(q·k / √D)·v, with dropout of attention weights."""

    @property
    def read_N(self) -> Tensor | None:
        """The tokens [N] whose queries it takes; None: those of all tokens."""

    def reading(self, read_N: Tensor | None) -> Attend:
        """Return the same attention for the queries of the tokens `read_N` [N], or this one if it is None or if the
        kernel needs all queries."""
        ...

    def __call__(self, q_QAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, dropout_p: float, /) -> Tensor:
        """Return the attended values [Q, A, D]; attention weights are dropped with probability `dropout_p`."""
        ...


def read(x_TX: Tensor, read_N: Tensor | None) -> Tensor:
    """Return the rows of `x_TX` [T, ...] of the tokens `read_N` [N]; all rows if it is None."""
    return x_TX if read_N is None else x_TX.index_select(0, read_N)


def bind(kernel: Kernel, batch: Batch[Tensor], window: int | None = None) -> Attend:
    """Bind `kernel` to the sequences of one batch. Keys further away than half the `window` (tokens) are not seen."""
    match kernel:
        case "sequences":
            # Imported lazily, because a kernel may need a newer torch than the rest.
            from bertwright.model.attention.sequences import Sequences

            return Sequences(batch, window)
        case "padded":
            from bertwright.model.attention.padded import Padded

            return Padded(batch, window)
        case "varlen":
            from bertwright.model.attention.varlen import Varlen

            return Varlen(batch, window)
        case "triton":
            from bertwright.model.attention.triton import Triton

            return Triton(batch, window)
        case _:
            assert_never(kernel)
