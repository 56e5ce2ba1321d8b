"""A network with its heads: those of pre-training, or a classifier where the configuration names classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.pretraining import PreTrainingModel

if TYPE_CHECKING:  # loaded where it is asked for
    from bertwright.model.classifier import SequenceClassifier

Model: TypeAlias = "PreTrainingModel | SequenceClassifier"
"""What can be trained, saved and exported."""


def build_model(config: NetworkConfig, kernel: Kernel = "sequences") -> Model:
    """The network of a configuration with weights drawn from torch's generator."""
    if not config.labels:
        return PreTrainingModel(config, kernel)
    from bertwright.model.classifier import SequenceClassifier

    return SequenceClassifier(config, kernel)
