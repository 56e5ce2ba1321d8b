"""The logits of masked tokens: the product of their states with the embedding of the vocabulary.

A CPU's matrix products take up to 1.6 times as long if the rows of their result do not begin at multiples of a cache
line, which those of BERT's 30,522 entries do not (measured on an AMD EPYC of Zen 4, docs/decisions/0057). There the
product is computed in blocks of columns, which stay in the cache until they are complete. The logits are the same.

Names carry shapes: P predictions, H hidden, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from bertwright.model.tracing import is_traced

_LINE = 64
"""Bytes of a cache line."""
_COLUMNS = 512
"""Columns of a block: with more, its rows of the embedding leave the cache closest to a core."""


def decode(states_PH: Tensor, embeddings_VH: Tensor, bias_V: Tensor | None) -> Tensor:
    """Logits [P, V]; differentiable once on a CPU."""
    # oneDNN, which multiplies in low precision, has no such difference. Autocast gives states in low precision, too.
    is_wide = states_PH.dtype in (torch.float32, torch.float64)
    is_aligned = len(embeddings_VH) * states_PH.element_size() % _LINE == 0
    if states_PH.device.type != "cpu" or not is_wide or is_aligned or is_traced():
        return linear(states_PH, embeddings_VH, bias_V)
    return _ByColumns.apply(states_PH, embeddings_VH, bias_V)  # type: ignore[no-untyped-call]


class _ByColumns(Function):
    @staticmethod
    def forward(ctx: Any, states_PH: Tensor, embeddings_VH: Tensor, bias_V: Tensor | None) -> Tensor:
        ctx.save_for_backward(states_PH, embeddings_VH)
        logits_PV = states_PH.new_empty(len(states_PH), len(embeddings_VH))
        for first in range(0, len(embeddings_VH), _COLUMNS):
            block = slice(first, first + _COLUMNS)
            rows_HC, into_PC = embeddings_VH[block].t(), logits_PV[:, block]
            if bias_V is None:
                torch.mm(states_PH, rows_HC, out=into_PC)
            else:
                torch.addmm(bias_V[block], states_PH, rows_HC, out=into_PC)
        return logits_PV

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_PV: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        states_PH, embeddings_VH = ctx.saved_tensors
        states, embeddings, bias = ctx.needs_input_grad
        return (
            gradient_PV @ embeddings_VH if states else None,
            gradient_PV.t() @ states_PH if embeddings else None,
            gradient_PV.sum(0) if bias else None,
        )
