"""What sits on the encoder in pre-training: the masked-token head, the pooler and the next-sentence head.

Names carry shapes: B sequences, H hidden, V vocabulary, P predictions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from bertwright.model.config import BertConfig


class MaskedTokenHead(nn.Module):
    """Transform, normalise, and compare with every token's embedding (the decoder is tied to them).

    Works on the P masked positions only; on all T it would cost more than the encoder of a small network.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.transform = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, masked_PH: Tensor, embeddings_VH: Tensor) -> Tensor:
        """Logits [P, V]."""
        return linear(self.norm(gelu(self.transform(masked_PH))), embeddings_VH, self.bias)


class Pooler(nn.Module):
    """A linear map and tanh on the hidden state of [CLS]."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, first_BH: Tensor) -> Tensor:
        """[B, H] -> [B, H]."""
        return torch.tanh(self.dense(first_BH))


class NextSentenceHead(nn.Module):
    """Does B follow A (class 0) or come from elsewhere (class 1)?"""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.classifier = nn.Linear(config.hidden_size, 2)

    def forward(self, pooled_BH: Tensor) -> Tensor:
        """Logits [B, 2]."""
        return self.classifier(pooled_BH)  # type: ignore[no-any-return]
