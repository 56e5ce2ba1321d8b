"""The kernel for CPUs: one call of fused attention per distinct length.

Names carry shapes: T tokens, A heads, D head width, n sequences of one length L, Q queries, K keys.
"""

from __future__ import annotations

from itertools import groupby, pairwise

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bertwright.examples.batch import Batch
from bertwright.model.dropout import drop

_SHORTEST = 64
"""Minimum number of queries per chunk: with a narrow window, smaller chunks would cost more in calls than they save."""


class Sequences:
    """Attention per distinct length, without padding: the kernel for CPUs.

    Unless sequences of equal length are already adjacent, tokens are gathered into that order and back, so a batch that
    is sorted by length pays nothing. Reading the lengths waits for the device, so this kernel is not for GPUs. With a
    `window`, a token sees the tokens at most half of it away, and in longer sequences each chunk of queries is
    multiplied only with the keys near it.
    """

    def __init__(self, batch: Batch[Tensor], window: int | None = None) -> None:
        self.reach = None if window is None else window // 2
        bounds = batch.cu_seqlens.tolist()
        spans = [(end - start, start) for start, end in pairwise(bounds) if end > start]
        self.runs = _runs(spans)
        self.order: Tensor | None = None
        # Sequences drawn in order of length already form runs, and are not copied.
        if len(self.runs) > len({length for length, _ in spans}):
            spans.sort()
            self.runs = _runs(spans)
            tokens = torch.cat([torch.arange(start, start + length) for length, start in spans])
            self.order = tokens.to(batch.cu_seqlens.device)
            self.inverse = torch.argsort(self.order)

    def __call__(self, q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, dropout_p: float) -> Tensor:
        """Return the attended values [T, A, D]."""
        if not self.runs:
            return v_TAD
        qkv = [q_TAD, k_TAD, v_TAD]
        if self.order is not None:
            qkv = [x.index_select(0, self.order) for x in qkv]
        if len(self.runs) == 1:  # split and concatenation would copy a single part, forward and backward
            out_TAD = self._attend_run(self.runs[0], dropout_p, *qkv)
        else:
            sizes = [count * length for count, length in self.runs]
            parts = zip(*(torch.split(x, sizes) for x in qkv), strict=True)
            out_TAD = torch.cat([self._attend_run(r, dropout_p, *p) for r, p in zip(self.runs, parts, strict=True)])
        return out_TAD if self.order is None else out_TAD.index_select(0, self.inverse)

    def _attend_run(self, run: tuple[int, int], dropout_p: float, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention of n consecutive sequences of length L: [n·L, A, D] -> [n·L, A, D]."""
        q_nALD, k_nALD, v_nALD = (x.view(*run, *x.shape[1:]).transpose(1, 2) for x in (q, k, v))
        if self.reach is None or run[1] <= self.reach + 1:  # every key is within reach
            out_nALD = _attend(q_nALD, k_nALD, v_nALD, dropout_p)
        else:
            out_nALD = _attend_near(q_nALD, k_nALD, v_nALD, dropout_p, self.reach)
        return out_nALD.transpose(1, 2).flatten(0, 1)


def _runs(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return (count, length) of each run of adjacent sequences of equal length, given their (length, start)."""
    return [(len(list(group)), length) for length, group in groupby(length for length, _ in spans)]


def _attend_near(q_nALD: Tensor, k_nALD: Tensor, v_nALD: Tensor, dropout_p: float, reach: int) -> Tensor:
    """Attention to the keys at most `reach` away, [n, A, L, D]: chunks of queries with the keys that they may see."""
    length, stretch = q_nALD.shape[-2], max(2 * reach, _SHORTEST)
    position_L = torch.arange(length, device=q_nALD.device)
    parts = []
    for start in range(0, length, stretch):
        end, low = min(start + stretch, length), max(0, start - reach)
        high = min(end + reach, length)
        seen_QK = (position_L[start:end, None] - position_L[low:high]).abs() <= reach
        queries, keys = slice(start, end), slice(low, high)
        parts.append(_attend(q_nALD[:, :, queries], k_nALD[:, :, keys], v_nALD[:, :, keys], dropout_p, seen_QK))
    return torch.cat(parts, dim=2)


def _attend(q_nAQD: Tensor, k_nAKD: Tensor, v_nAKD: Tensor, dropout_p: float, seen_QK: Tensor | None = None) -> Tensor:
    """Attention to all keys, or to those selected by the mask `seen_QK` [Q, K]: [n, A, Q, D]."""
    # torch's fused attention has no dropout on a CPU, and in bfloat16 it takes 2.5 times as long as this formula.
    if dropout_p or q_nAQD.dtype in (torch.bfloat16, torch.float16):
        scores_nAQK = (q_nAQD * q_nAQD.shape[-1] ** -0.5) @ k_nAKD.transpose(-1, -2)
        if seen_QK is not None:
            scores_nAQK = scores_nAQK.masked_fill(~seen_QK, -torch.inf)
        return drop(scores_nAQK.softmax(-1), dropout_p) @ v_nAKD
    return scaled_dot_product_attention(q_nAQD, k_nAKD, v_nAKD, attn_mask=seen_QK)
