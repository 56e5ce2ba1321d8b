"""Attention within packed sequences, written out: the rule that the kernels must follow, in float64 numpy.

For each sequence, each head and each query: weights are the softmax over that sequence's keys of q·k / √D, and the
result is the weighted sum of its values (Vaswani et al. 2017 §3.2.1). Nothing crosses a sequence's border. With a
window the keys are those at most half of it before or after the query.
"""

from itertools import pairwise

import numpy as np


def attention(
    q_TAD: np.ndarray, k_TAD: np.ndarray, v_TAD: np.ndarray, cu_seqlens: list[int], window: int | None = None
) -> np.ndarray:
    out_TAD = np.zeros_like(q_TAD, dtype=np.float64)
    _, heads, width = q_TAD.shape
    for start, end in pairwise(cu_seqlens):
        for head in range(heads):
            for query in range(start, end):
                near = end if window is None else window // 2
                keys = slice(max(start, query - near), min(end, query + near + 1))
                scores = k_TAD[keys, head].astype(np.float64) @ q_TAD[query, head] / np.sqrt(width)
                weights = np.exp(scores - scores.max())
                out_TAD[query, head] = weights / weights.sum() @ v_TAD[keys, head]
    return out_TAD
