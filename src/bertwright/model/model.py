"""A network with its heads: pre-training heads, a classifier if the configuration names classes; none for vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, cast

from torch import Tensor, nn

from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.pretraining import PreTrainingModel

if TYPE_CHECKING:  # imported only when needed
    from bertwright.model.batch import PackedBatch
    from bertwright.model.classifier import Classifier
    from bertwright.model.encoder import Encoder
    from bertwright.model.vectors import VectorModel

Model: TypeAlias = "PreTrainingModel | Classifier | VectorModel"
"""A model that can be trained, saved and exported."""


class HeadlessModel(nn.Module):
    """An encoder without heads, as many are published: it gives vectors, and is what a training starts from."""

    def __init__(self, config: NetworkConfig, kernel: Kernel = "sequences") -> None:
        from bertwright.model.encoder import build_encoder

        super().__init__()
        self.config = config
        self.add_module(config.family, build_encoder(config, kernel))

    @property
    def encoder(self) -> Encoder:
        """The encoder; its tensors are named after its family."""
        return cast("Encoder", self.get_submodule(self.config.family))

    def forward(self, batch: PackedBatch) -> Tensor:
        """The hidden states [T, H] of all tokens."""
        return self.encoder(batch)


def build_model(config: NetworkConfig, kernel: Kernel = "sequences") -> Model:
    """Build the network of a configuration, with weights drawn from torch's generator."""
    if config.predicts_tokens:
        return PreTrainingModel(config, kernel)
    if config.gives_vectors:
        from bertwright.model.vectors import VectorModel

        return VectorModel(config, kernel)
    from bertwright.model.classifier import Classifier

    return Classifier(config, kernel)
