"""How well the positive of each anchor is found among all held-out positives, by the cosine of their vectors.

Names carry shapes: N pairs, S texts, H numbers of a vector, C candidates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.json_values import json_number

_AT_ONCE = 512
"""Anchors that are compared at a time."""
Vectors = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Found:
    """The search of N anchors among C candidates."""

    ranks: Ids
    """[N] the place of the positive among the candidates, from 1; those that are as near count as nearer."""
    nearest: Ids
    """[N] the index of the pair whose positive is the nearest other candidate; the own one if there is none."""
    cosines: Vectors
    """[N, 2] the cosine of the anchor with its positive, and with the nearest other candidate."""


def scores_of(vectors_SH: Vectors, labels_S3: Ids, sizes: Sequence[int]) -> dict[str, Any]:
    """The scores of held-out pairs by the vectors [S, H] of their texts, whose labels [S, 3] are the number in the
    pair, the group and the text; by `sizes` also those of shortened vectors. Undefined ones are None."""
    shares = ("recall_at_1", "recall_at_10", "mrr")
    if not np.isfinite(vectors_SH).all():
        return dict.fromkeys(shares)
    found = {size: _shares(search(vectors_SH[:, :size], labels_S3).ranks) for size in sizes}
    scores: dict[str, Any] = dict(found[sizes[0]])
    return {**scores, "sizes": {f"{size}": of_size for size, of_size in found.items()}} if len(sizes) > 1 else scores


def _shares(ranks_N: Ids) -> dict[str, float | None]:
    return {
        "recall_at_1": json_number(float((ranks_N <= 1).mean())),
        "recall_at_10": json_number(float((ranks_N <= 10).mean())),
        "mrr": json_number(float((1 / ranks_N).mean())),
    }


def search(vectors_SH: Vectors, labels_S3: Ids) -> Found:
    """Look for the positive of each anchor among the different positives of all pairs, except those that are right,
    too: of its group, or of a pair with the same anchor. The vectors [S, H] and labels [S, 3] are those of
    `scores_of`."""
    unit_SH = vectors_SH / np.maximum(np.linalg.norm(vectors_SH, axis=1, keepdims=True), 1e-12)
    anchors, positives = (np.flatnonzero(labels_S3[:, 0] == number) for number in (1, 2))
    texts_N = labels_S3[positives, 2]
    _, first_C, own_N = np.unique(texts_N, return_index=True, return_inverse=True)
    others = list(_also_right(labels_S3[anchors, 2], texts_N, labels_S3[anchors, 1]))
    column = {int(texts_N[pair]): place for place, pair in enumerate(first_C.tolist())}
    ranks, nearest, cosines = [], [], []
    for begin in range(0, len(anchors), _AT_ONCE):
        block = slice(begin, begin + _AT_ONCE)
        cosines_nC = unit_SH[anchors[block]] @ unit_SH[positives[first_C]].T
        rows = np.arange(len(cosines_nC))
        own_n = cosines_nC[rows, own_N[block]]
        for row, texts in enumerate(others[block]):
            cosines_nC[row, [column[text] for text in texts if text in column]] = -np.inf
        cosines_nC[rows, own_N[block]] = -np.inf
        ranks.append(1 + (cosines_nC >= own_n[:, None]).sum(1))
        best_n = cosines_nC.argmax(1)
        of_best_n = cosines_nC[rows, best_n]
        nearest.append(np.where(np.isinf(of_best_n), np.arange(begin, begin + len(rows)), first_C[best_n]))
        cosines.append(np.stack([own_n, np.where(np.isinf(of_best_n), own_n, of_best_n)], 1))
    return Found(*(np.concatenate(parts) for parts in (ranks, nearest, cosines)))


def candidates(anchors_N: NDArray[Any], positives_N: NDArray[Any], groups_N: NDArray[Any]) -> Ids:
    """[N] how many positives each anchor is compared with, its own included, given the numbers of the texts and of
    their groups."""
    known = set(positives_N.tolist())
    excluded = _also_right(anchors_N, positives_N, groups_N)
    numbers = (
        len(known) - len((texts & known) - {own}) for texts, own in zip(excluded, positives_N.tolist(), strict=True)
    )
    return np.fromiter(numbers, np.int64, len(positives_N))


def _also_right(anchors_N: NDArray[Any], positives_N: NDArray[Any], groups_N: NDArray[Any]) -> Iterator[set[int]]:
    """Yield for each pair the texts that are no wrong answers to its anchor: those of its group, positives of the same
    anchor, and the anchor itself."""
    of_group, of_anchor = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    pairs = list(zip(anchors_N.tolist(), positives_N.tolist(), groups_N.tolist(), strict=True))
    for anchor, positive, group in pairs:
        of_group[group] |= {anchor, positive}
        of_anchor[anchor].add(positive)
    for anchor, _, group in pairs:
        yield of_group[group] | of_anchor[anchor]
