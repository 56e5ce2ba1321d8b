"""The encoder interface: packed batches in, one hidden state per token out. Each family has its own encoder and
classification head.

Names carry shapes: B sequences, T tokens of all sequences together, N tokens whose states are read, H hidden, C
classes, V vocabulary.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol, assert_never

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bertwright.model.batch import PackedBatch
from bertwright.model.bert.encoder import Bert
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.modern.network import ModernConfig


class Encoder(Protocol):
    """A module whose tensors are named after it; fine-tuning needs only this interface of a network."""

    kernel: Kernel
    """How attention is computed: it changes the speed, not the function, and may be set at any time."""
    layers: nn.ModuleList
    """Its layers. The first argument of each is the hidden states, so they can be recomputed in the backward pass."""

    @property
    def token_weight(self) -> Tensor:
        """The token embedding [V, H], to which the masked-token head is tied."""

    def __call__(self, batch: PackedBatch, read_N: Tensor | None = None) -> Tensor:
        """Return the last layer's hidden states [T, H], or only those of the tokens `read_N` [N], [N, H], if given.

        `read_N` does not change the states but saves time: the last layer computes the part after attention for these
        tokens only, and with the kernel for CPUs attention and, except in ModernBERT, queries.
        """

    def pool(self, first_BH: Tensor) -> Tensor:
        """Return one state per sequence [B, H], from the hidden states [B, H] of their first tokens ([CLS]).

        Called only if the network has a next-sentence head or a classifier. Without a pooler, returns the states
        unchanged.
        """


def build_encoder(config: NetworkConfig, kernel: Kernel) -> nn.Module:
    """Build the `Encoder` of the network's family."""
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


def build_classification_head(config: NetworkConfig) -> nn.Module:
    """Build the module of the network's family that maps states [N, H], of `Encoder.pool` or of tokens, to logits of
    `config.labels`, [N, C]."""
    match config:
        case BertConfig():
            from bertwright.model.bert.encoder import BertClassificationHead

            return BertClassificationHead(config)
        case ModernConfig():
            from bertwright.model.modern.encoder import ModernClassificationHead

            return ModernClassificationHead(config)
        case DistilBertConfig():
            from bertwright.model.distilbert.encoder import DistilBertClassificationHead

            return DistilBertClassificationHead(config)
        case _:
            assert_never(config)


def recompute_layers(encoder: Encoder) -> None:
    """Make each layer of the encoder recompute its activations in the backward pass (Chen et al. 2016).

    Only the input of each layer is kept, so activations take H numbers per token and layer instead of about a dozen
    times as many, and a step computes about a third more. The recomputation is bit-identical to the forward pass:
    dropout draws from torch's generators, whose states are stored with the input, and the autocast state is restored.
    """
    for layer in encoder.layers:
        # Patch the instance: a wrapper module would add its own name to the tensor names.
        layer.__dict__["forward"] = partial(checkpoint, layer.forward, use_reentrant=False)
