"""Multiple choice: cross-entropy over the choices of each question (Devlin et al. 2019 §4.4).

Names carry shapes: B sequences, one for each choice of all questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertwright.examples.batch import MicroBatch
from bertwright.examples.loader import Heldout
from bertwright.model.batch import PackedBatch
from bertwright.tasks.choice.choice_scores import scores_of, split_questions
from bertwright.tasks.objective import Rows, Scores
from bertwright.tasks.terms import Counted, Summed, Term


class Choice:
    """One term over all questions."""

    counted: ClassVar[Mapping[str, Counted]] = {"choice": "sequences"}
    rows: ClassVar[Rows] = "sequences"

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Summed]:
        """As `Objective.terms`; the model returns a score for each sequence, [B, 1]."""
        number_B, right_B = batch.sequence_labels.unbind(-1)
        # A prediction for each sequence, of which those of the right choices have a weight: nothing depends on how many
        # questions and choices there are, so the shapes are known without waiting for the device.
        labels_B = torch.arange(len(number_B), device=number_B.device)
        scores_BB = by_question(model(batch)[:, 0], number_B)
        return {"choice": Term(scores_BB, labels_B, batch.sequence_weights * right_B)}

    def score(self, logits: Sequence[NDArray[np.float64]], batches: Sequence[MicroBatch], heldout: Heldout) -> Scores:
        """As `ScoredObjective.score`, of logits [B, 1] each: accuracy, and Matthews' correlation of places."""
        found = scores_of(*split_questions(logits, batches))
        return {name: found[name] for name in ("accuracy", "matthews")}


def by_question(scores_B: Tensor, number_B: Tensor) -> Tensor:
    """[B, B] in row b the scores of the choices of b's question; the lowest finite number, of which no probability is
    left, for those of others. `number_B` counts the choices of each question from 1; 0 is padding.

    It is finite because a row of padding has no other: a loss of weight 0 must not be NaN.
    """
    question_B = (number_B == 1).cumsum(0)
    same_BB = (question_B[:, None] == question_B) & (number_B > 0)
    return torch.where(same_BB, scores_B, torch.finfo(scores_B.dtype).min)
