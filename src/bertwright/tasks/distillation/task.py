"""What is done for distillation: as for pre-training, with a teacher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertwright.core.artifact import Artifact
from bertwright.tasks.distillation.config import DistillationConfig
from bertwright.tasks.pretraining.task import PreTrainingTask

if TYPE_CHECKING:
    from bertwright.model.config import NetworkConfig
    from bertwright.model.model import Model
    from bertwright.tasks.objective import Objective
    from bertwright.tasks.section import TaskSection


class DistillationTask(PreTrainingTask):
    """See `Task`. The model is scored without the teacher, as after pre-training."""

    @classmethod
    def section_type(cls) -> type[TaskSection]:
        """As `Task.section_type`."""
        from bertwright.tasks.distillation.section import DistillationSection

        return DistillationSection

    def __init__(self, settings: DistillationConfig) -> None:
        self._settings: DistillationConfig = settings

    def check(self, network: NetworkConfig, lengths: Sequence[int], vocab: Artifact) -> None:
        """As `Task.check`: the teacher is one for this network."""
        from bertwright.tasks.distillation.teacher_fit import check_teacher

        check_teacher(self._settings, network, lengths, vocab)

    def build(self, model: Model, pair_task: str) -> Objective:
        """As `Task.build`; loads the teacher."""
        from bertwright.model.pretraining import PreTrainingModel
        from bertwright.tasks.distillation.objective import distillation

        assert isinstance(model, PreTrainingModel)
        return distillation(self._settings, model, pair_task)
