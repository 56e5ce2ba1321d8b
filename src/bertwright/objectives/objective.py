"""What an objective is, and which one a run takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, assert_never

from torch import nn

from bertwright.model.batch import PackedBatch
from bertwright.objectives.config import ObjectiveConfig, PreTrainingConfig
from bertwright.objectives.pretraining import PreTraining
from bertwright.objectives.term import Counted, Term


class Objective(Protocol):
    """What a network is trained for. The loss of a step is the sum of the means of its terms."""

    @property
    def counted(self) -> Mapping[str, Counted]:
        """The terms by name, in the order in which they are added, and what each is the mean over.

        Checkpoints are judged by the first.
        """

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Term]:
        """The terms of a batch, by the same names, from one forward pass."""


def judged_by(objective: Objective) -> str:
    """The name of the held-out score that checkpoints are compared by; less is better."""
    return f"{next(iter(objective.counted))}_loss"


def build_objective(config: ObjectiveConfig, next_sentence: bool) -> Objective:
    """The objective of `config`; `next_sentence` says whether the examples are pairs that are to be told apart."""
    match config:
        case PreTrainingConfig():
            return PreTraining(next_sentence)
        case _:
            assert_never(config)
