"""Masked-language modelling alone: pairs are read, but not learned."""

from __future__ import annotations

from typing import Any

from bertwright.plugins import PreTrainingTask, Task, TaskPlugin


class MaskedOnlyConfig(TaskPlugin):
    """Masked-language modelling alone."""

    share: float = 1.0
    """Factor on the loss."""

    def next_sentence(self, pairs: bool) -> bool:
        return False

    def build(self) -> Task:
        return MaskedOnlyTask(self)


class MaskedOnlyTask(PreTrainingTask):
    """As pre-training, with another loss."""

    def build(self, model: Any, pair_task: str) -> Any:
        from toy.objective import MaskedOnly

        return MaskedOnly()
