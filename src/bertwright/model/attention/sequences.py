"""The kernel for CPUs: one call of fused attention per distinct length.

Names carry shapes: T tokens, A heads, D head width, n sequences of one length L.
"""

from __future__ import annotations

from itertools import groupby, pairwise

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bertwright.examples.batch import Batch
from bertwright.model.dropout import drop


class Sequences:
    """Attention per distinct length, on exactly the tokens there are: the kernel for CPUs.

    Where equal lengths do not already lie together the tokens are gathered into that order and back, so a batch
    drawn in order of length pays nothing. Reading the lengths waits for the device, hence not for GPUs.
    """

    def __init__(self, batch: Batch[Tensor]) -> None:
        # Reading the lengths waits for the device, hence no kernel for GPUs.
        bounds = batch.cu_seqlens.tolist()
        spans = [(end - start, start) for start, end in pairwise(bounds) if end > start]
        self.runs = _runs(spans)
        self.order: Tensor | None = None
        # Sequences that were drawn in order of length already lie in runs, and are not copied.
        if len(self.runs) > len({length for length, _ in spans}):
            spans.sort()
            self.runs = _runs(spans)
            tokens = torch.cat([torch.arange(start, start + length) for length, start in spans])
            self.order = tokens.to(batch.cu_seqlens.device)
            self.inverse = torch.argsort(self.order)

    def __call__(self, q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, dropout_p: float) -> Tensor:
        """The attended values, [T, A, D]."""
        if not self.runs:
            return v_TAD
        qkv = [q_TAD, k_TAD, v_TAD]
        if self.order is not None:
            qkv = [x.index_select(0, self.order) for x in qkv]
        if len(self.runs) == 1:  # a split and a concatenation of one part copy it, forward and backward
            out_TAD = _attend_run(self.runs[0], dropout_p, *qkv)
        else:
            sizes = [count * length for count, length in self.runs]
            parts = zip(*(torch.split(x, sizes) for x in qkv), strict=True)
            out_TAD = torch.cat([_attend_run(r, dropout_p, *part) for r, part in zip(self.runs, parts, strict=True)])
        return out_TAD if self.order is None else out_TAD.index_select(0, self.inverse)


def _runs(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """(count, length) of each stretch of neighbours of equal length, from (length, start) of each sequence."""
    return [(len(list(group)), length) for length, group in groupby(length for length, _ in spans)]


def _attend_run(run: tuple[int, int], dropout_p: float, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of n sequences of length L that lie end to end: [n·L, A, D] -> [n·L, A, D]."""
    q_nALD, k_nALD, v_nALD = (x.view(*run, *x.shape[1:]).transpose(1, 2) for x in (q, k, v))
    # torch's fused attention has no dropout on a CPU, and in bfloat16 it takes 2.5 times as long as the formula does.
    if dropout_p or q.dtype in (torch.bfloat16, torch.float16):
        scores_nALL = (q_nALD * q.shape[-1] ** -0.5) @ k_nALD.transpose(-1, -2)
        out_nALD = drop(scores_nALL.softmax(-1), dropout_p) @ v_nALD
    else:
        out_nALD = scaled_dot_product_attention(q_nALD, k_nALD, v_nALD)
    return out_nALD.transpose(1, 2).flatten(0, 1)
