"""Contrastive learning: each anchor is to find its positive among all positives and negatives of the global batch.

The loss of an anchor is the cross-entropy of its cosines with all candidates, divided by a temperature (InfoNCE: van
den Oord et al. 2018; with the other pairs' positives as negatives: Henderson et al. 2017). Texts that may be right,
too, are left out: those of the pair's own group, and equal ones. With several sizes of vectors it is the sum of the
losses of their first numbers (Kusupati et al. 2022).

Names carry shapes: B sequences, H numbers of a vector, N pairs, C candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch.utils.checkpoint import checkpoint

from bertwright.examples.batch import MicroBatch
from bertwright.examples.loader import Heldout
from bertwright.model.batch import PackedBatch
from bertwright.tasks.embedding.config import EmbeddingConfig
from bertwright.tasks.embedding.embedding_scores import scores_of
from bertwright.tasks.objective import Rows, Scores
from bertwright.tasks.terms import Counted, Summed

_BLOCK = 1 << 24
"""Cosines that are in memory at a time, for each of the tensors that the loss needs."""


@dataclass(frozen=True)
class Sums:
    """A term as sums over pairs; see `Summed`."""

    loss_sum: Tensor
    """Σ weight · loss in nats, a scalar: for several sizes the sum of their losses."""
    correct_sum: Tensor
    """Σ weight of the anchors to which no candidate is as near as their positive, by the full vectors: a scalar."""
    weight_sum: Tensor
    """Σ weight: a scalar."""
    share: float = 1.0
    """Weight of the mean in the loss."""


@dataclass(frozen=True)
class Contrast:
    """One term over all pairs; see `JointObjective`."""

    settings: EmbeddingConfig
    counted: ClassVar[Mapping[str, Counted]] = {"contrast": "sequences"}
    rows: ClassVar[Rows] = "sequences"

    def outputs(self, model: nn.Module, batch: PackedBatch) -> Tensor:
        """As `JointObjective.outputs`: the vectors [B, H]."""
        vectors_BH: Tensor = model(batch)
        return vectors_BH

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Summed]:
        """As `Objective.terms`: the pairs of one batch compared with each other."""
        return self.compare(self.outputs(model, batch), batch.sequence_labels, batch.sequence_weights)

    def compare(self, outputs_BD: Tensor, labels_BK: Tensor, weights_B: Tensor) -> Mapping[str, Summed]:
        """As `JointObjective.compare`, of vectors [B, H] and the labels [B, 3] of `PairExamples.batch`."""
        pairs = _Pairs.of(labels_BK)
        weights_N = weights_B[pairs.anchors]
        if not len(weights_N):
            nothing = outputs_BD.sum() * 0
            return {"contrast": Sums(nothing, nothing.detach(), nothing.detach())}
        # In low precision a cosine divided by a temperature of 0.05 would be wrong by tenths.
        with torch.autocast(outputs_BD.device.type, enabled=False):
            losses, right_N = list[Tensor](), None
            for size in self.sizes(outputs_BD.shape[1]):
                loss_N, found_N = self._losses(normalize(outputs_BD[:, :size], dim=-1), pairs)
                losses.append(torch.dot(loss_N, weights_N.to(loss_N)))
                right_N = found_N if right_N is None else right_N
            assert right_N is not None
            return {"contrast": Sums(torch.stack(losses).sum(), (right_N * weights_N).sum(), weights_N.sum())}

    def sizes(self, width: int) -> list[int]:
        """The sizes of vectors of `width` numbers that are trained, the full one first."""
        return sorted({width, *self.settings.dimensions}, reverse=True)

    def score(self, logits: Sequence[NDArray[np.float64]], batches: Sequence[MicroBatch], heldout: Heldout) -> Scores:
        """As `ScoredObjective.score`, of vectors [B, H] each: how well anchors find their positives among all."""
        vectors_SH = np.concatenate(logits)
        found = scores_of(
            vectors_SH, np.concatenate([batch.sequence_labels for batch in batches]), [vectors_SH.shape[1]]
        )
        return {name: found[name] for name in ("recall_at_1", "recall_at_10", "mrr")}

    def _losses(self, unit_BH: Tensor, pairs: _Pairs) -> tuple[Tensor, Tensor]:
        """[N] the loss of each pair, and [N] whether its anchor finds its positive."""
        anchors_NH, others_CH = unit_BH[pairs.anchors], unit_BH[pairs.candidates]
        forward_N, right_N = self._search(anchors_NH, others_CH, pairs.not_compared)
        if not self.settings.symmetric:
            return forward_N, right_N
        backward_N, _ = self._search(others_CH[: len(anchors_NH)], anchors_NH, pairs.not_compared_back)
        return (forward_N + backward_N) / 2, right_N

    def _search(self, from_NH: Tensor, to_CH: Tensor, excluded: Any) -> tuple[Tensor, Tensor]:
        """The cross-entropy [N] of finding row n of `to_CH` from row n of `from_NH`, and whether it is found [N];
        `excluded(rows)` tells which candidates [rows, C] are not compared."""

        def part(from_nH: Tensor, to_CH: Tensor, rows_n: Tensor) -> tuple[Tensor, Tensor]:
            scores_nC = (from_nH @ to_CH.T / self.settings.temperature).masked_fill(excluded(rows_n), -torch.inf)
            return cross_entropy(scores_nC, rows_n, reduction="none"), scores_nC.detach().argmax(1) == rows_n

        rows_N = torch.arange(len(from_NH), device=from_NH.device)
        step = max(1, _BLOCK // len(to_CH))
        if step >= len(from_NH):
            return part(from_NH, to_CH, rows_N)
        # Computed again in the backward pass, so that only one block is in memory.
        parts = [
            checkpoint(part, from_NH[rows_n], to_CH, rows_n, use_reentrant=False)
            for rows_n in torch.split(rows_N, step)
        ]
        losses, right = zip(*parts, strict=True)
        return torch.cat(losses), torch.cat(right)


@dataclass(frozen=True)
class _Pairs:
    """The pairs of a batch: which rows are what, and which texts may not be compared."""

    anchors: Tensor
    """[N] the rows of the anchors."""
    candidates: Tensor
    """[C] the rows of the positives, in the order of their anchors, then those of all negatives."""
    groups: Tensor
    """[N] the number of each pair's group, from 0 in this batch."""
    texts: Tensor
    """[B] the number of each row's text, from 0 in this batch."""
    of_group: Tensor
    """[groups, texts] whether a text is an anchor or a positive of a group."""

    @classmethod
    def of(cls, labels_B3: Tensor) -> _Pairs:
        """The pairs of the rows of a batch, by their labels; padding has the number 0."""
        number_B, group_B, text_B = labels_B3.unbind(-1)
        anchors, positives = ((number_B == number).nonzero()[:, 0] for number in (1, 2))
        negatives = (number_B > 2).nonzero()[:, 0]
        _, groups = torch.unique(group_B[anchors], return_inverse=True)
        _, texts = torch.unique(text_B, return_inverse=True)
        of_group = labels_B3.new_zeros(
            int(groups.max()) + 1 if len(groups) else 0, int(texts.max()) + 1 if len(texts) else 0, dtype=torch.bool
        )
        for rows in (anchors, positives):
            of_group[groups, texts[rows]] = True
        return cls(anchors, torch.cat([positives, negatives]), groups, texts, of_group)

    def not_compared(self, rows_n: Tensor) -> Tensor:
        """[n, C] which candidates may be right for the anchors of some pairs, other than their positives."""
        alike_nC = self.of_group[self.groups[rows_n]][:, self.texts[self.candidates]]
        own_N = self.texts[self.anchors]
        alike_nC[:, : len(own_N)] |= own_N[rows_n, None] == own_N
        return alike_nC.scatter_(1, rows_n[:, None], False)

    def not_compared_back(self, rows_n: Tensor) -> Tensor:
        """[n, N] which anchors may be right for the positives of some pairs, other than their own."""
        alike_nN = self.of_group[self.groups[rows_n]][:, self.texts[self.anchors]]
        positive_N = self.texts[self.candidates[: len(self.anchors)]]
        return (alike_nN | (positive_N[rows_n, None] == positive_N)).scatter_(1, rows_n[:, None], False)
