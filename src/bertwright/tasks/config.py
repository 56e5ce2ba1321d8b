"""The task of a recipe (`train.objective`): the union of the tasks' sections. Does not import torch."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bertwright.tasks.classification.config import ClassificationConfig
from bertwright.tasks.distillation.config import DistillationConfig
from bertwright.tasks.pretraining.config import PreTrainingConfig

TaskConfig = Annotated[PreTrainingConfig | DistillationConfig | ClassificationConfig, Field(discriminator="kind")]
"""Any task: the union of their sections."""
