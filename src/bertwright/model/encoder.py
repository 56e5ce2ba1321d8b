"""What an encoder is: packed batches in, a hidden state for every token out. One file for each family of networks.

Names carry shapes: B sequences, T tokens of all sequences together, N tokens whose states are read, H hidden, V
vocabulary.
"""

from __future__ import annotations

from typing import Protocol, assert_never

from torch import Tensor, nn

from bertwright.model.batch import PackedBatch
from bertwright.model.bert.encoder import Bert
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.modern.network import ModernConfig


class Encoder(Protocol):
    """A module whose tensors are named after it; fine-tuning needs no more of a network than this."""

    kernel: Kernel
    """How attention is computed: it changes the speed, not the function, and may be set at any time."""
    layers: nn.ModuleList
    """Its layers, each with the hidden states for its first argument: these may be computed again on the way back."""

    @property
    def token_weight(self) -> Tensor:
        """The token embedding [V, H], to which the masked-token head is tied."""

    def __call__(self, batch: PackedBatch, read_N: Tensor | None = None) -> Tensor:
        """The last layer's hidden states, [T, H]; those of the tokens `read_N` [N] alone, [N, H], where it is given.

        The same states, for less: what the last layer does after attention is done for these tokens only.
        """

    def pool(self, first_BH: Tensor) -> Tensor:
        """One state for each sequence, [B, H], of the hidden states [B, H] of their first tokens ([CLS]).

        Asked for only where the network has a next-sentence head or a classifier; without a pooler it is those states
        as they are.
        """


def build_encoder(config: NetworkConfig, kernel: Kernel) -> nn.Module:
    """The `Encoder` of the network's family."""
    match config:
        case BertConfig():
            return Bert(config, kernel)
        case ModernConfig():
            from bertwright.model.modern.encoder import Modern

            return Modern(config, kernel)
        case DistilBertConfig():
            from bertwright.model.distilbert.encoder import DistilBert

            return DistilBert(config, kernel)
        case _:
            assert_never(config)
