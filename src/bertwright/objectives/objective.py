"""The interface of an objective, and its construction from the recipe."""

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
    """A training objective. The loss of a step is the sum of the means of its terms, each times its share."""

    @property
    def counted(self) -> Mapping[str, Counted]:
        """The terms by name, in the order in which they are added, and what each is averaged over.

        Checkpoints are compared by the first one.
        """

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Summed]:
        """The terms of a batch by name, as in `counted`, from one forward pass."""


def judged_by(objective: Objective) -> str:
    """The name of the held-out score that checkpoints are compared by; lower is better."""
    return f"{next(iter(objective.counted))}_loss"


def build_objective(config: ObjectiveConfig, model: Model, pair_task: str = "nsp") -> Objective:
    """The objective of `config` for training `model`; pairs are classified if `model` has a next-sentence head.

    `pair_task` is the name of the task of the pair labels (`examples.config.PAIRS`). A teacher is loaded here, on the
    device of `model`.
    """
    match config:
        case PreTrainingConfig():
            return PreTraining(model.config.next_sentence, pair_task)
        case ClassificationConfig():
            from bertwright.objectives.classification import Classification

            return Classification(len(model.config.labels))
        case DistillationConfig():
            assert isinstance(model, PreTrainingModel)
            # Imported only if there is a teacher.
            from bertwright.objectives.distillation import distillation

            return distillation(config, model, pair_task)
        case _:
            assert_never(config)
