"""Answer spans: cross-entropy of their first and their last token (Devlin et al. 2019 §4.2).

Names carry shapes: B sequences, T tokens of all sequences together, L tokens of the longest row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertwright.examples.batch import MicroBatch
from bertwright.examples.loader import Heldout
from bertwright.model.batch import PackedBatch
from bertwright.tasks.objective import Rows, Scores
from bertwright.tasks.terms import Counted, Summed, Term


@dataclass(frozen=True)
class Span:
    """Two terms, each over the tokens of every sequence; the loss is their mean."""

    max_answer: int
    """Tokens of the longest answer that is given."""
    counted: ClassVar[Mapping[str, Counted]] = {"start": "sequences", "end": "sequences"}
    rows: ClassVar[Rows] = "tokens"

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Summed]:
        """As `Objective.terms`; the model returns logits [T, 2] of all tokens."""
        rows_BL2 = _by_sequence(model(batch), batch)
        weights = batch.sequence_weights
        return {
            name: Term(rows_BL2[:, :, k], batch.sequence_labels[:, k], weights, share=0.5)
            for k, name in enumerate(self.counted)
        }

    def score(self, logits: Sequence[NDArray[np.float64]], batches: Sequence[MicroBatch], heldout: Heldout) -> Scores:
        """As `ScoredObjective.score`, of logits [T, 2] each: exact match and F1."""
        from bertwright.tasks.span.scores import score_windows

        return score_windows(logits, batches, heldout, self.max_answer)


def _by_sequence(logits_T2: Tensor, batch: PackedBatch) -> Tensor:
    """[B, L, 2] the logits of each sequence, filled up with the lowest finite number, of which no probability is left.

    It is finite because a padding sequence of length 0 has no other: a loss of weight 0 must not be NaN.
    """
    begins_B1, ends_B1 = batch.cu_seqlens[:-1, None].long(), batch.cu_seqlens[1:, None].long()
    # A row holds complete sequences, and its length is known without waiting for the device.
    at_BL = begins_B1 + torch.arange(max(batch.max_row, 1), device=logits_T2.device)
    rows_BL2 = logits_T2[at_BL.clamp(max=max(len(logits_T2) - 1, 0))]
    return rows_BL2.masked_fill((at_BL >= ends_B1)[:, :, None], torch.finfo(logits_T2.dtype).min)
