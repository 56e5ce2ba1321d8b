"""A network with its heads: pre-training heads, or a classifier if the configuration names classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.pretraining import PreTrainingModel

if TYPE_CHECKING:  # imported only when needed
    from bertwright.model.classifier import SequenceClassifier

Model: TypeAlias = "PreTrainingModel | SequenceClassifier"
"""A model that can be trained, saved and exported."""


def build_model(config: NetworkConfig, kernel: Kernel = "sequences") -> Model:
    """Build the network of a configuration, with weights drawn from torch's generator."""
    if config.predicts_tokens:
        return PreTrainingModel(config, kernel)
    from bertwright.model.classifier import SequenceClassifier

    return SequenceClassifier(config, kernel)
