"""What an objective is, and which one a run takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, assert_never

from torch import nn

from bertwright.model.batch import PackedBatch
from bertwright.model.model import Model
from bertwright.model.pretraining import PreTrainingModel
from bertwright.objectives.config import ClassificationConfig, DistillationConfig, ObjectiveConfig, PreTrainingConfig
from bertwright.objectives.pretraining import PreTraining
from bertwright.objectives.term import Counted, Summed


class Objective(Protocol):
    """What a network is trained for. The loss of a step is the sum of the means of its terms, times their shares."""

    @property
    def counted(self) -> Mapping[str, Counted]:
        """The terms by name, in the order in which they are added, and what each is the mean over.

        Checkpoints are judged by the first.
        """

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Summed]:
        """The terms of a batch, by the same names, from one forward pass."""


def judged_by(objective: Objective) -> str:
    """The name of the held-out score that checkpoints are compared by; less is better."""
    return f"{next(iter(objective.counted))}_loss"


def build_objective(config: ObjectiveConfig, model: Model, pair_task: str = "nsp") -> Objective:
    """The objective of `config` for training `model`, whose next-sentence head says whether pairs are told apart.

    `pair_task` names what the labels of pairs say (`examples.config.PAIRS`). A teacher is read here, and is then where
    `model` is.
    """
    match config:
        case PreTrainingConfig():
            return PreTraining(model.config.next_sentence, pair_task)
        case ClassificationConfig():
            from bertwright.objectives.classification import Classification

            return Classification(len(model.config.labels))
        case DistillationConfig():
            assert isinstance(model, PreTrainingModel)
            # Not loaded by a training without a teacher.
            from bertwright.objectives.distillation import distillation

            return distillation(config, model, pair_task)
        case _:
            assert_never(config)
