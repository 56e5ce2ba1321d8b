"""Answer spans: cross-entropy of their first and their last token (Devlin et al. 2019 §4.2).

Names carry shapes: B sequences, T tokens of all sequences together, L tokens of the longest row.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from bertwright.model.batch import PackedBatch
from bertwright.tasks.terms import Counted, Summed, Term


class Span:
    """Two terms, each over the tokens of every sequence; the loss is their mean."""

    counted: Mapping[str, Counted] = {"start": "sequences", "end": "sequences"}

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Summed]:
        """As `Objective.terms`; the model returns logits [T, 2] of all tokens."""
        rows_BL2 = _by_sequence(model(batch), batch)
        weights = batch.sequence_weights
        return {
            name: Term(rows_BL2[:, :, k], batch.sequence_labels[:, k], weights, share=0.5)
            for k, name in enumerate(self.counted)
        }


def _by_sequence(logits_T2: Tensor, batch: PackedBatch) -> Tensor:
    """[B, L, 2] the logits of each sequence, filled up with the lowest finite number, of which no probability is left.

    It is finite because a padding sequence of length 0 has no other: a loss of weight 0 must not be NaN.
    """
    begins_B1, ends_B1 = batch.cu_seqlens[:-1, None].long(), batch.cu_seqlens[1:, None].long()
    # A row holds complete sequences, and its length is known without waiting for the device.
    at_BL = begins_B1 + torch.arange(max(batch.max_row, 1), device=logits_T2.device)
    rows_BL2 = logits_T2[at_BL.clamp(max=max(len(logits_T2) - 1, 0))]
    return rows_BL2.masked_fill((at_BL >= ends_B1)[:, :, None], torch.finfo(logits_T2.dtype).min)
