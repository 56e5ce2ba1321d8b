"""The kernel for CPUs: one call of fused attention per distinct length.

Names carry shapes: T tokens, N tokens that are read, A heads, D head width, n sequences of one length L, Q queries, K
keys, S sequences.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import groupby, islice, pairwise

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bertwright.examples.batch import Batch
from bertwright.model.dropout import drop

_SHORTEST = 64
"""Minimum number of queries per chunk: with a narrow window, smaller chunks would cost more in calls than they save."""
_MULTIPLE = 32
"""The number of read tokens per sequence is rounded up to a multiple of this, at most to its length, so that products
have few shapes: in low precision oneDNN compiles each."""


class Sequences:
    """Attention per distinct length, without padding: the kernel for CPUs.

    Unless sequences of equal length are already adjacent, tokens are gathered into that order and back, so a batch that
    is sorted by length pays nothing. Reading the lengths waits for the device, so this kernel is not for GPUs. With a
    `window`, a token sees the tokens at most half of it away, and in longer sequences each chunk of queries is
    multiplied only with the keys near it; then the queries of all tokens are needed.
    """

    def __init__(self, batch: Batch[Tensor], window: int | None = None) -> None:
        self.reach = None if window is None else window // 2
        self.read_N: Tensor | None = None
        bounds = batch.cu_seqlens.tolist()
        spans = [(end - start, start) for start, end in pairwise(bounds) if end > start]
        self.runs = _runs(spans)
        self.order: Tensor | None = None
        self.inverse: Tensor | None = None
        # Sequences drawn in order of length already form runs, and are not copied.
        if len(self.runs) > len({length for length, _ in spans}):
            spans.sort()
            self.runs = _runs(spans)
            tokens = torch.cat([torch.arange(start, start + length) for length, start in spans])
            self.order = tokens.to(batch.cu_seqlens.device)
            self.inverse = torch.argsort(self.order)
        self.queries = _Queries([length for _, length in self.runs], self.order, self.inverse)

    def reading(self, read_N: Tensor | None) -> Sequences:
        """Return this kernel for the queries of the tokens `read_N`; itself if none are given, or with a window."""
        if read_N is None or not len(read_N) or self.reach is not None or not self.runs:
            return self
        reading = copy(self)
        reading.read_N = read_N
        reading.queries = _queries_of(read_N if self.inverse is None else self.inverse[read_N], self.runs)
        return reading

    def __call__(self, q_QAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, dropout_p: float) -> Tensor:
        """Return the attended values [Q, A, D]."""
        if not self.runs:
            return v_TAD
        q_QAD = _taken(q_QAD, self.queries.order)
        k_TAD, v_TAD = (_taken(x_TAD, self.order) for x_TAD in (k_TAD, v_TAD))
        if len(self.runs) == 1:  # split and concatenation would copy a single part, forward and backward
            out = self._attend_run(self.runs[0], dropout_p, q_QAD, k_TAD, v_TAD)
        else:
            tokens = [count * length for count, length in self.runs]
            numbers = [count * number for (count, _), number in zip(self.runs, self.queries.numbers, strict=True)]
            cut = (torch.split(x, sizes) for x, sizes in ((q_QAD, numbers), (k_TAD, tokens), (v_TAD, tokens)))
            parts = zip(self.runs, *cut, strict=True)
            out = torch.cat([self._attend_run(run, dropout_p, *part) for run, *part in parts])
        return _taken(out, self.queries.back)

    def _attend_run(self, run: tuple[int, int], dropout_p: float, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention of n consecutive sequences of length L, with Q queries each: [n·Q, A, D] -> [n·Q, A, D]."""
        q_nAQD, k_nALD, v_nALD = (x.view(run[0], -1, *x.shape[1:]).transpose(1, 2) for x in (q, k, v))
        if self.reach is None or run[1] <= self.reach + 1:  # every key is within reach
            out_nAQD = _attend(q_nAQD, k_nALD, v_nALD, dropout_p)
        else:
            out_nAQD = _attend_near(q_nAQD, k_nALD, v_nALD, dropout_p, self.reach)
        return out_nAQD.transpose(1, 2).flatten(0, 1)


@dataclass(frozen=True)
class _Queries:
    """The queries of all runs, in as many places per sequence as the longest of its run needs."""

    numbers: list[int]
    """Places per sequence of each run."""
    order: Tensor | None
    """Which of the queries is in each place; None: all of them, in order."""
    back: Tensor | None
    """The place of each query; None if `order` is."""


def _queries_of(token_N: Tensor, runs: list[tuple[int, int]]) -> _Queries:
    """Return the queries of the tokens `token_N` [N], numbered in the order of the runs."""
    device = token_N.device
    counts, lengths = (torch.tensor(values, device=device) for values in zip(*runs, strict=True))
    length_S = lengths.repeat_interleave(counts)
    sequence_N = torch.bucketize(token_N, length_S.cumsum(0), right=True)
    number_S = torch.bincount(sequence_N, minlength=len(length_S))
    each = iter(number_S.tolist())
    numbers = [_rounded(max(islice(each, count)), length) for count, length in runs]
    places_S = torch.tensor(numbers, device=device).repeat_interleave(counts)
    # The n-th query of a sequence is in the n-th of its places; the places after its last query repeat query 0.
    by_sequence = torch.argsort(sequence_N, stable=True)
    first_S = number_S.cumsum(0) - number_S
    rank_N = torch.empty_like(by_sequence)
    rank_N[by_sequence] = torch.arange(len(token_N), device=device) - first_S[sequence_N[by_sequence]]
    back = (places_S.cumsum(0) - places_S)[sequence_N] + rank_N
    places = sum(count * number for (count, _), number in zip(runs, numbers, strict=True))
    order = torch.zeros(places, dtype=torch.int64, device=device)
    order[back] = torch.arange(len(token_N), device=device)
    return _Queries(numbers, order, back)


def _rounded(number: int, length: int) -> int:
    # More than the length only if a token is read more than once; at least 1, because attention needs a query.
    return max(1, number, min(-(-number // _MULTIPLE) * _MULTIPLE, length))


def _taken(x: Tensor, order: Tensor | None) -> Tensor:
    return x if order is None else x.index_select(0, order)


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
