"""From the recipe's section to the objective."""

from __future__ import annotations

from bertwright.objectives.config import ObjectiveConfig
from bertwright.objectives.objective import Objective
from bertwright.objectives.pretraining import PreTraining


def build_objective(config: ObjectiveConfig, next_sentence: bool) -> Objective:
    """The objective of `config`; `next_sentence` says whether the examples are pairs that are to be told apart."""
    match config.kind:
        case "pretraining":
            return PreTraining(next_sentence)
