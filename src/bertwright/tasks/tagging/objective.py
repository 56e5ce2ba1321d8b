"""Token tagging: cross-entropy over the tags of words (Devlin et al. 2019 §5.3)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from bertwright.model.batch import PackedBatch
from bertwright.tasks.terms import Counted, Summed, Term


class Tagging:
    """One term over all tagged words."""

    counted: Mapping[str, Counted] = {"tagging": "predictions"}

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Summed]:
        """As `Objective.terms`; the model returns logits [P, C] of the first piece of each word."""
        return {"tagging": Term(model(batch), batch.labels, batch.weights)}
