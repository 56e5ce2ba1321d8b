"""What is done for each task of the union."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from pydantic import TypeAdapter

from bertwright.tasks.choice.config import ChoiceConfig
from bertwright.tasks.choice.task import ChoiceTask
from bertwright.tasks.classification.config import ClassificationConfig
from bertwright.tasks.classification.task import ClassificationTask
from bertwright.tasks.config import TaskConfig
from bertwright.tasks.distillation.config import DistillationConfig
from bertwright.tasks.distillation.task import DistillationTask
from bertwright.tasks.embedding.config import EmbeddingConfig
from bertwright.tasks.embedding.task import EmbeddingTask
from bertwright.tasks.pretraining.config import PreTrainingConfig
from bertwright.tasks.pretraining.task import PreTrainingTask
from bertwright.tasks.span.config import SpanConfig
from bertwright.tasks.span.task import SpanTask
from bertwright.tasks.tagging.config import TaggingConfig
from bertwright.tasks.tagging.task import TaggingTask
from bertwright.tasks.task import Task, TaskPlugin

TASKS: tuple[type[Task], ...] = (
    PreTrainingTask,
    DistillationTask,
    ClassificationTask,
    TaggingTask,
    SpanTask,
    ChoiceTask,
    EmbeddingTask,
)
"""All of them; the first one is the default."""
_SETTINGS = TypeAdapter[TaskConfig](TaskConfig)


def task_of(settings: TaskConfig) -> Task:
    """The task with these settings."""
    match settings:
        case PreTrainingConfig():
            return PreTrainingTask(settings)
        case DistillationConfig():
            return DistillationTask(settings)
        case ClassificationConfig():
            return ClassificationTask(settings)
        case TaggingConfig():
            return TaggingTask(settings)
        case SpanConfig():
            return SpanTask(settings)
        case ChoiceConfig():
            return ChoiceTask(settings)
        case EmbeddingConfig():
            return EmbeddingTask(settings)
        case TaskPlugin():
            return settings.build()
        case _:
            assert_never(settings)


def task_of_sealed(sections: Mapping[str, Any]) -> Task:
    """The task of a training, from the `sections` in the manifest of its artifact or checkpoint."""
    objective = sections.get("train", {}).get("objective", {})
    # Manifests omit defaults, of which pre-training is one.
    return task_of(_SETTINGS.validate_python({"kind": "pretraining", **objective}))
