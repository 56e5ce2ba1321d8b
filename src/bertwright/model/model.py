"""A network with its heads: those of pre-training, or a classifier where the configuration names classes."""

from __future__ import annotations

from bertwright.model.classifier import SequenceClassifier
from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.pretraining import PreTrainingModel

Model = PreTrainingModel | SequenceClassifier
"""What can be trained, saved and exported."""


def build_model(config: NetworkConfig, kernel: Kernel = "sequences") -> Model:
    """The network of a configuration with weights drawn from torch's generator."""
    return SequenceClassifier(config, kernel) if config.labels else PreTrainingModel(config, kernel)
