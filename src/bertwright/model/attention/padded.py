"""The kernel for any device: rows padded to a rectangle, with masked keys.

Names carry shapes: R rows, S longest row, T tokens, A heads, D head width.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bertwright.core.errors import DataError
from bertwright.examples.batch import Batch
from bertwright.model.dropout import drop
from bertwright.model.tracing import is_exported, is_traced


class Padded:
    """Attention over rows padded to [R, S], with masked keys; supports attention dropout on any device.

    A row with several sequences gets a block mask: a token sees only its own sequence. Slots and mask are computed once
    for all layers. With a `window`, a token sees the tokens at most half of it away.
    """

    read_N = None

    def __init__(self, batch: Batch[Tensor], window: int | None = None) -> None:
        cu_rows, longest = batch.cu_rows, batch.max_row
        lengths_R = (cu_rows[1:] - cu_rows[:-1]).long()
        # A longer row would overwrite its neighbour. Checked only if the check does not wait for a device, and not
        # while tracing, when values are not available.
        looks = cu_rows.device.type == "cpu" and not is_traced()
        if looks and bool((lengths_R > longest).any()):
            raise DataError(f"a row of {int(lengths_R.max())} tokens in a batch with max_row = {longest}")
        self.shape = (len(lengths_R), longest)
        token_T = torch.arange(len(batch.token_ids), device=cu_rows.device)
        # Rows without padding already have the layout of the rectangle.
        self.full = len(batch.token_ids) == len(lengths_R) * longest
        row_T = _part_of(token_T, cu_rows)
        self.slot_T = row_T * longest + token_T - cu_rows[:-1].long()[row_T]
        if len(cu_rows) == len(batch.cu_seqlens):
            # A sequence of length 0 sees its (zero) first key: with every key masked, softmax would give NaN.
            positions_S = torch.arange(longest, device=cu_rows.device)
            self.mask = (positions_S < lengths_R.clamp(min=1)[:, None])[:, None, None, :]
        else:
            self.mask = self._blocks(_part_of(token_T, batch.cu_seqlens))
        if window is not None:
            # Tokens of a sequence are as far apart in the row as in the sequence.
            slot_S = torch.arange(longest, device=cu_rows.device)
            away_SS = (slot_S[:, None] - slot_S).abs()
            # Each slot sees itself: an unused slot far from all tokens would see nothing, and softmax would give NaN.
            self.mask = (self.mask & (away_SS <= window // 2)) | (away_SS == 0)

    def reading(self, read_N: Tensor | None) -> Padded:
        """Return this kernel, which needs the queries of all tokens."""
        return self

    def __call__(self, q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, dropout_p: float) -> Tensor:
        """Return the attended values [T, A, D]."""
        if not len(v_TAD):
            return v_TAD
        q_RASD, k_RASD, v_RASD = map(self._spread, (q_TAD, k_TAD, v_TAD))
        if dropout_p and is_exported():  # fused attention is exported with a dropout that has no backward pass
            scores_RASS = q_RASD @ k_RASD.transpose(-1, -2) * q_RASD.shape[-1] ** -0.5
            weights_RASS = scores_RASS.masked_fill(~self.mask, -torch.inf).softmax(-1)
            out_RASD = drop(weights_RASS, dropout_p) @ v_RASD
        else:
            out_RASD = scaled_dot_product_attention(q_RASD, k_RASD, v_RASD, attn_mask=self.mask, dropout_p=dropout_p)
        out_XAD = out_RASD.transpose(1, 2).flatten(0, 1)
        return out_XAD if self.full else out_XAD.index_select(0, self.slot_T)

    def _spread(self, x_TAD: Tensor) -> Tensor:
        """[T, A, D] -> [R, A, S, D]; unused slots are zero."""
        rows, longest = self.shape
        if self.full:
            return x_TAD.view(rows, longest, *x_TAD.shape[1:]).transpose(1, 2)
        # Zeros, not uninitialised memory: a masked key still enters the product, and NaN times 0 is NaN.
        flat = x_TAD.new_zeros(rows * longest, *x_TAD.shape[1:]).index_copy(0, self.slot_T, x_TAD)
        return flat.view(rows, longest, *x_TAD.shape[1:]).transpose(1, 2)

    def _blocks(self, sequence_T: Tensor) -> Tensor:
        """[R, 1, S, S] mask of the pairs of slots that belong to the same sequence; unused slots see each other."""
        rows, longest = self.shape
        if self.full:
            number_RS = sequence_T.view(self.shape)
            return (number_RS[:, :, None] == number_RS[:, None, :])[:, None]
        # Unused slots share the number -1, so that each sees at least one key: with all keys masked, softmax gives NaN.
        number_RS = sequence_T.new_full((rows * longest,), -1).index_copy(0, self.slot_T, sequence_T)
        number_RS = number_RS.view(rows, longest)
        return (number_RS[:, :, None] == number_RS[:, None, :])[:, None]


def _part_of(token_T: Tensor, bounds: Tensor) -> Tensor:
    """[T] the number of the part that contains each token; `bounds` [parts + 1] are the boundaries of the parts."""
    ends = bounds[1:].long()
    if is_exported():  # the exporter does not support bucketize
        return (token_T[:, None] >= ends).sum(-1)
    return torch.bucketize(token_T, ends, right=True)
