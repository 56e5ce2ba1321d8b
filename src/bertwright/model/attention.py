"""Self-attention inside the sequences of a packed batch.

A kernel is bound to one batch's `cu_seqlens`, so that its indices are computed once and serve every layer; then
all kernels have one signature, `(q_TAD, k_TAD, v_TAD, dropout_p) -> TAD`, and give the same numbers.

Names carry shapes: B sequences, S longest sequence, T tokens, A heads, D head width, n sequences of one length L.
"""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Literal, Protocol, assert_never

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bertwright.core.errors import DataError, RecipeError

Kernel = Literal["sequences", "padded"]


class Attend(Protocol):
    """Attention within each sequence of one batch: softmax(q·k / √D)·v, dropping attention weights with `dropout_p`."""

    def __call__(self, q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, dropout_p: float) -> Tensor:
        """The attended values, [T, A, D]."""
        ...


def bind(kernel: Kernel, cu_seqlens: Tensor, cu_rows: Tensor, max_row: int) -> Attend:
    """`kernel` for the sequences of one batch (see `Batch`)."""
    match kernel:
        case "sequences":
            return Sequences(cu_seqlens)
        case "padded":
            return Padded(cu_seqlens, cu_rows, max_row)
        case _:
            assert_never(kernel)


def kernel_for(attention_dropout: float, device_type: str) -> Kernel:
    """The kernel to run with: `sequences` on a CPU, which it serves best; `padded` on a GPU, which `sequences` would
    keep waiting at every batch, and wherever attention weights are dropped, which only `padded` can."""
    return "sequences" if device_type == "cpu" and not attention_dropout else "padded"


class Sequences:
    """One call of fused attention per distinct length, on exactly the tokens there are: the kernel for CPUs.

    Where equal lengths do not already lie together the tokens are gathered into that order and back, so a batch
    drawn in order of length pays nothing. Reading the lengths waits for the device, hence not for GPUs.
    """

    def __init__(self, cu_seqlens: Tensor) -> None:
        bounds = cu_seqlens.tolist()
        spans = [(end - start, start) for start, end in pairwise(bounds) if end > start]
        self.runs = _runs(spans)
        self.order: Tensor | None = None
        if len(self.runs) > len({length for length, _ in spans}):
            spans.sort()
            self.runs = _runs(spans)
            tokens = torch.cat([torch.arange(start, start + length) for length, start in spans])
            self.order = tokens.to(cu_seqlens.device)
            self.inverse = torch.argsort(self.order)

    def __call__(self, q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, dropout_p: float) -> Tensor:
        """The attended values, [T, A, D]; refuses dropout, for which only slow kernels exist."""
        if dropout_p > 0:
            raise RecipeError(
                f"the attention kernel 'sequences' cannot drop attention weights (dropout {dropout_p}); "
                "use the kernel 'padded', or model.attention_dropout = 0"
            )
        if not self.runs:
            return v_TAD
        qkv = [q_TAD, k_TAD, v_TAD]
        if self.order is not None:
            qkv = [x.index_select(0, self.order) for x in qkv]
        sizes = [count * length for count, length in self.runs]
        parts = zip(*(torch.split(x, sizes) for x in qkv), strict=True)
        out_TAD = torch.cat([_attend_run(run, *part) for run, part in zip(self.runs, parts, strict=True)])
        return out_TAD if self.order is None else out_TAD.index_select(0, self.inverse)


def _runs(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """(count, length) of each stretch of neighbours of equal length, from (length, start) of each sequence."""
    return [(len(list(group)), length) for length, group in groupby(length for length, _ in spans)]


def _attend_run(run: tuple[int, int], q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of n sequences of length L that lie end to end: [n·L, A, D] -> [n·L, A, D]."""
    q_nALD, k_nALD, v_nALD = (x.view(*run, *x.shape[1:]).transpose(1, 2) for x in (q, k, v))
    return scaled_dot_product_attention(q_nALD, k_nALD, v_nALD).transpose(1, 2).flatten(0, 1)


class Padded:
    """Rows spread to [R, S] with masked keys: the plain way, which supports attention dropout on any device.

    A row of several sequences is masked block by block: a token sees its own sequence only.
    """

    def __init__(self, cu_seqlens: Tensor, cu_rows: Tensor, max_row: int) -> None:
        lengths_R = cu_rows.diff().long()
        # A longer row would overwrite its neighbour. Looked at where looking does not wait for a device.
        if cu_rows.device.type == "cpu" and bool((lengths_R > max_row).any()):
            raise DataError(f"a row of {int(lengths_R.max())} tokens in a batch whose max_row is {max_row}")
        self.shape = (len(lengths_R), max_row)
        self.starts, self.ends, self.sequence_ends = cu_rows[:-1].long(), cu_rows[1:].long(), cu_seqlens[1:].long()
        self.single = len(cu_rows) == len(cu_seqlens)
        # A sequence of length 0 sees its (zero) first key: with every key masked, softmax would give NaN.
        positions_S = torch.arange(max_row, device=cu_rows.device)
        self.mask_R11S = (positions_S < lengths_R.clamp(min=1)[:, None])[:, None, None, :]

    def __call__(self, q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, dropout_p: float) -> Tensor:
        """The attended values, [T, A, D]."""
        if not len(v_TAD):
            return v_TAD
        batch, longest = self.shape
        token_T = torch.arange(len(q_TAD), device=q_TAD.device)
        row_T = torch.bucketize(token_T, self.ends, right=True)
        slot_T = row_T * longest + token_T - self.starts[row_T]

        def spread(x_TAD: Tensor) -> Tensor:
            flat = x_TAD.new_zeros(batch * longest, *x_TAD.shape[1:]).index_copy(0, slot_T, x_TAD)
            return flat.view(batch, longest, *x_TAD.shape[1:]).transpose(1, 2)

        mask = self.mask_R11S if self.single else self._blocks(token_T, slot_T)
        out_RASD = scaled_dot_product_attention(
            spread(q_TAD), spread(k_TAD), spread(v_TAD), attn_mask=mask, dropout_p=dropout_p
        )
        return out_RASD.transpose(1, 2).flatten(0, 1).index_select(0, slot_T)

    def _blocks(self, token_T: Tensor, slot_T: Tensor) -> Tensor:
        """[R, 1, S, S] whether two slots belong to the same sequence; unused slots see each other."""
        batch, longest = self.shape
        sequence_T = torch.bucketize(token_T, self.sequence_ends, right=True)
        number_RS = sequence_T.new_full((batch * longest,), -1).index_copy(0, slot_T, sequence_T).view(batch, longest)
        return (number_RS[:, :, None] == number_RS[:, None, :])[:, None]
