"""The task of a recipe (`train.objective`): the union of the tasks' sections. Does not import torch."""

from __future__ import annotations

from typing import Annotated

from bertwright.core.plugins import PLUGINS
from bertwright.tasks.choice.config import ChoiceConfig
from bertwright.tasks.classification.config import ClassificationConfig
from bertwright.tasks.distillation.config import DistillationConfig
from bertwright.tasks.embedding.config import EmbeddingConfig
from bertwright.tasks.pretraining.config import PreTrainingConfig
from bertwright.tasks.span.config import SpanConfig
from bertwright.tasks.tagging.config import TaggingConfig
from bertwright.tasks.task import TaskPlugin

TaskConfig = Annotated[
    PreTrainingConfig
    | DistillationConfig
    | ClassificationConfig
    | TaggingConfig
    | SpanConfig
    | ChoiceConfig
    | EmbeddingConfig
    | TaskPlugin,
    PLUGINS,
]
"""Any task: the union of their sections."""
