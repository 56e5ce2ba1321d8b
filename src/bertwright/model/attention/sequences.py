"""The kernel for CPUs: one call of attention per distinct length, or in low precision for all of similar lengths.

oneDNN compiles its low-precision products for each shape, and short products take longer to begin than to compute; so
there sequences of similar lengths are padded to the longest of them, and their products are one.

Names carry shapes: T tokens, N tokens that are read, A heads, D head width, n sequences of one length L, Q queries, K
keys, S sequences.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bertwright.examples.batch import Batch
from bertwright.model.dropout import drop

_SHORTEST = 64
"""Minimum number of queries per chunk: with a narrow window, smaller chunks would cost more in calls than they save."""
_LOW = (torch.bfloat16, torch.float16)
_FEWEST = 16
"""Places that may be padding whatever the length."""
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
        self._spans = [(end - start, start) for start, end in pairwise(bounds) if end > start]
        self._layouts: dict[bool, _Layout] = {}
        self._queries: dict[bool, _Queries] = {}

    def layout(self, low: bool) -> _Layout:
        """How the tokens are laid out for products: of sequences of similar lengths together if `low`."""
        if low not in self._layouts:
            self._layouts[low] = _padded(self._spans) if low else _exact(self._spans)
        return self._layouts[low]

    def queries(self, low: bool) -> _Queries:
        """The queries of that layout."""
        if low not in self._queries:
            self._queries[low] = _queries_of(self.read_N, self.layout(low))
        return self._queries[low]

    def reading(self, read_N: Tensor | None) -> Sequences:
        """Return this kernel for the queries of the tokens `read_N`; itself if none are given, or with a window."""
        if read_N is None or not len(read_N) or self.reach is not None or not self._spans:
            return self
        reading = copy(self)
        reading.read_N, reading._queries = read_N, {}
        return reading

    def __call__(self, q_QAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, dropout_p: float) -> Tensor:
        """Return the attended values [Q, A, D]."""
        if not self._spans:
            return v_TAD
        low = q_QAD.dtype in _LOW
        layout, queries = self.layout(low), self.queries(low)
        q_QAD = _taken(q_QAD, queries.order)
        k_TAD, v_TAD = (_taken(x_TAD, layout.order) for x_TAD in (k_TAD, v_TAD))
        if len(layout.runs) == 1:  # split and concatenation would copy a single part, forward and backward
            out = self._attend_run(layout.runs[0], dropout_p, q_QAD, k_TAD, v_TAD)
        else:
            tokens = [run.sequences * run.length for run in layout.runs]
            numbers = [run.sequences * number for run, number in zip(layout.runs, queries.numbers, strict=True)]
            cut = (torch.split(x, sizes) for x, sizes in ((q_QAD, numbers), (k_TAD, tokens), (v_TAD, tokens)))
            parts = zip(layout.runs, *cut, strict=True)
            out = torch.cat([self._attend_run(run, dropout_p, *part) for run, *part in parts])
        return _taken(out, queries.back)

    def _attend_run(self, run: _Run, dropout_p: float, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention of n consecutive sequences of length L, with Q queries each: [n·Q, A, D] -> [n·Q, A, D]."""
        q_nAQD, k_nALD, v_nALD = (x.view(run.sequences, -1, *x.shape[1:]).transpose(1, 2) for x in (q, k, v))
        if self.reach is None or run.length <= self.reach + 1:  # every key is within reach
            out_nAQD = _attend(q_nAQD, k_nALD, v_nALD, dropout_p, run.real_n1L)
        else:
            out_nAQD = _attend_near(q_nAQD, k_nALD, v_nALD, dropout_p, self.reach, run.real_n1L)
        return out_nAQD.transpose(1, 2).flatten(0, 1)


class _Run(NamedTuple):
    """Consecutive sequences in as many places each."""

    sequences: int
    length: int
    real_n1L: Tensor | None = None
    """Which of their places [n, 1, L] have a token; None: all."""


@dataclass(frozen=True)
class _Layout:
    """The tokens of a batch in the order of products."""

    runs: list[_Run]
    order: Tensor | None = None
    """Which of the tokens is in each place; None: all of them, in order."""
    inverse: Tensor | None = None
    """The place of each token; None if `order` is."""


def _exact(spans: list[tuple[int, int]]) -> _Layout:
    """Runs of sequences of equal lengths, given the (length, start) of each sequence."""
    runs = _runs(spans)
    # Sequences drawn in order of length already form runs, and are not copied.
    if len(runs) == len({length for length, _ in spans}):
        return _Layout(runs)
    spans = sorted(spans)
    order = torch.cat([torch.arange(start, start + length) for length, start in spans])
    return _Layout(_runs(spans), order, torch.argsort(order))


def _runs(spans: list[tuple[int, int]]) -> list[_Run]:
    return [_Run(len(list(group)), length) for length, group in groupby(length for length, _ in spans)]


def _padded(spans: list[tuple[int, int]]) -> _Layout:
    """Runs of sequences of similar lengths, padded to the longest of each run by its last token."""
    groups = [list(group) for _, group in groupby(sorted(spans), key=lambda span: _about(span[0]))]
    if all(group[0][0] == group[-1][0] for group in groups):
        return _exact(spans)
    runs, order, inverse, places = list[_Run](), list[Tensor](), torch.empty(sum(n for n, _ in spans)).long(), 0
    for group in groups:
        length_n, start_n = torch.tensor(group).T
        place_L = torch.arange(int(length_n[-1]))
        real_nL = place_L < length_n[:, None]
        of_token_nL = start_n[:, None] + place_L.minimum(length_n[:, None] - 1)
        inverse[of_token_nL[real_nL]] = places + torch.arange(of_token_nL.numel()).view_as(of_token_nL)[real_nL]
        order.append(of_token_nL.flatten())
        runs.append(_Run(len(group), len(place_L), None if real_nL.all() else real_nL[:, None]))
        places += of_token_nL.numel()
    return _Layout(runs, torch.cat(order), inverse)


def _about(length: int) -> int:
    """The length rounded up, to four values an octave: at most a fifth of the places of a run are padding, or
    `_FEWEST` a sequence."""
    step = max(_FEWEST, 1 << length.bit_length() >> 3)
    return -(-length // step) * step


@dataclass(frozen=True)
class _Queries:
    """The queries of all runs, in as many places per sequence as the longest of its run needs."""

    numbers: list[int]
    """Places per sequence of each run."""
    order: Tensor | None
    """Which of the queries is in each place; None: all of them, in order."""
    back: Tensor | None
    """The place of each query; None if `order` is."""


def _queries_of(token_N: Tensor | None, layout: _Layout) -> _Queries:
    """Return the queries of the tokens `token_N` [N], or of all."""
    if token_N is None:
        return _Queries([run.length for run in layout.runs], layout.order, layout.inverse)
    token_N = token_N if layout.inverse is None else layout.inverse[token_N]
    device = token_N.device
    counts, lengths = (
        torch.tensor(values, device=device) for values in zip(*(run[:2] for run in layout.runs), strict=True)
    )
    length_S = lengths.repeat_interleave(counts)
    sequence_N = torch.bucketize(token_N, length_S.cumsum(0), right=True)
    number_S = torch.bincount(sequence_N, minlength=len(length_S))
    each = iter(number_S.tolist())
    numbers = [_rounded(max(islice(each, run.sequences)), run.length) for run in layout.runs]
    places_S = torch.tensor(numbers, device=device).repeat_interleave(counts)
    # The n-th query of a sequence is in the n-th of its places; the places after its last query repeat query 0.
    by_sequence = torch.argsort(sequence_N, stable=True)
    first_S = number_S.cumsum(0) - number_S
    rank_N = torch.empty_like(by_sequence)
    rank_N[by_sequence] = torch.arange(len(token_N), device=device) - first_S[sequence_N[by_sequence]]
    back = (places_S.cumsum(0) - places_S)[sequence_N] + rank_N
    places = sum(run.sequences * number for run, number in zip(layout.runs, numbers, strict=True))
    order = torch.zeros(places, dtype=torch.int64, device=device)
    order[back] = torch.arange(len(token_N), device=device)
    return _Queries(numbers, order, back)


def _rounded(number: int, length: int) -> int:
    # More than the length only if a token is read more than once; at least 1, because attention needs a query.
    return max(1, number, min(-(-number // _MULTIPLE) * _MULTIPLE, length))


def _taken(x: Tensor, order: Tensor | None) -> Tensor:
    return x if order is None else x.index_select(0, order)


def _attend_near(
    q_nALD: Tensor, k_nALD: Tensor, v_nALD: Tensor, dropout_p: float, reach: int, real_n1L: Tensor | None
) -> Tensor:
    """Attention to the keys at most `reach` away, [n, A, L, D]: each chunk of queries with the keys of its own and of
    both neighbouring chunks."""
    length, size = q_nALD.shape[-2], max(reach, _SHORTEST)
    position_L = torch.arange(length, device=q_nALD.device)
    if length <= 2 * size:  # every chunk would see all keys
        seen = _within(reach, position_L, position_L, real_n1L)
        return _attend(q_nALD, k_nALD, v_nALD, dropout_p, seen)
    # Of overlapping slices, the backward pass of each would fill a gradient as large as all of them.
    q_chunks, k_chunks, v_chunks = (torch.split(x, size, dim=2) for x in (q_nALD, k_nALD, v_nALD))
    parts = []
    for number, queries in enumerate(q_chunks):
        around = slice(max(0, number - 1), number + 2)
        keys, values = torch.cat(k_chunks[around], dim=2), torch.cat(v_chunks[around], dim=2)
        first = around.start * size
        real = None if real_n1L is None else real_n1L[:, :, first : first + keys.shape[2]]
        position_Q = position_L[number * size :][: queries.shape[2]]
        seen = _within(reach, position_Q, position_L[first:][: keys.shape[2]], real)
        parts.append(_attend(queries, keys, values, dropout_p, seen))
    return torch.cat(parts, dim=2)


def _within(reach: int, position_Q: Tensor, position_K: Tensor, real_n1K: Tensor | None) -> Tensor:
    """Which keys each query sees, [Q, K], or [n, Q, K] if some keys are padding."""
    near_QK = (position_Q[:, None] - position_K).abs() <= reach
    return near_QK if real_n1K is None else near_QK & real_n1K


def _attend(q_nAQD: Tensor, k_nAKD: Tensor, v_nAKD: Tensor, dropout_p: float, seen: Tensor | None = None) -> Tensor:
    """Attention to all keys, or to those selected by the mask `seen`, [Q, K] or [n, Q or 1, K]: [n, A, Q, D]."""
    # torch's fused attention has no dropout on a CPU, and in bfloat16 it takes 2.5 times as long as this formula.
    seen = seen if seen is None or seen.ndim == 2 else seen[:, None]
    if dropout_p or q_nAQD.dtype in _LOW:
        scores_nAQK = (q_nAQD * q_nAQD.shape[-1] ** -0.5) @ k_nAKD.transpose(-1, -2)
        if seen is not None:
            # Added, because filling takes three times as long, again in the backward pass. Half of the least number:
            # a sum must not become minus infinity, because the queries of padding may see no key, and NaN would reach
            # the gradients of others.
            least = torch.finfo(scores_nAQK.dtype).min / 2
            scores_nAQK = scores_nAQK.add_(scores_nAQK.new_zeros(seen.shape).masked_fill_(~seen, least))
        return drop(scores_nAQK.softmax(-1), dropout_p) @ v_nAKD
    return scaled_dot_product_attention(q_nAQD, k_nAKD, v_nAKD, attn_mask=seen)
