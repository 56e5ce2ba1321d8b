"""Token tagging: cross-entropy over the tags of words (Devlin et al. 2019 §5.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from bertwright.examples.batch import MicroBatch
from bertwright.examples.loader import Heldout
from bertwright.model.batch import PackedBatch
from bertwright.tasks.objective import Rows, Scores
from bertwright.tasks.tagging.config import TaggedFiles
from bertwright.tasks.terms import Counted, Summed, Term


@dataclass(frozen=True)
class Tagging:
    """One term over all tagged words."""

    files: TaggedFiles
    """The tags, and whether they mark entities."""
    counted: ClassVar[Mapping[str, Counted]] = {"tagging": "predictions"}
    rows: ClassVar[Rows] = "predictions"

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Summed]:
        """As `Objective.terms`; the model returns logits [P, C] of the first piece of each word."""
        return {"tagging": Term(model(batch), batch.labels, batch.weights)}

    def score(self, logits: Sequence[NDArray[np.float64]], batches: Sequence[MicroBatch], heldout: Heldout) -> Scores:
        """As `ScoredObjective.score`, of logits [P, C] each; see `score_words`."""
        from bertwright.tasks.tagging.word_scores import score_words

        found = score_words(np.concatenate(logits), batches, heldout, self.files)
        return {name: value for name, value in found.items() if name != "types"}
