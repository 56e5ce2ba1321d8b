"""DistilBERT's encoder on packed batches: Sanh et al. 2019 §2; half of BERT's layers, without segments and pooler.

Its classification head has a linear map with ReLU instead of a pooler. Names carry shapes: B sequences, T tokens of all
sequences together, N tokens whose states are read, H hidden, V vocabulary, C classes.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import relu

from bertwright.model.attention.kernel import bind
from bertwright.model.batch import PackedBatch
from bertwright.model.config import Kernel
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.dropout import Dropout
from bertwright.model.layers import Layer
from bertwright.model.norm import LayerNorm


class DistilBert(nn.Module):
    """Embeddings and encoder layers; see `Encoder`."""

    def __init__(self, config: DistilBertConfig, kernel: Kernel) -> None:
        super().__init__()
        self.kernel: Kernel = kernel
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.n_layers))

    @property
    def token_weight(self) -> Tensor:
        """As `Encoder.token_weight`, [V, H]."""
        return self.embeddings.token.weight

    def forward(self, batch: PackedBatch, read_N: Tensor | None = None) -> Tensor:
        """As `Encoder.__call__`: [T, H], or [N, H]; segment ids are not read."""
        # Bind once per batch; otherwise every layer would recompute the same indices (docs/decisions/0004).
        attend = bind(self.kernel, batch)
        x_TH: Tensor = self.embeddings(batch.token_ids, batch.position_ids)
        *inner, last = self.layers
        for layer in inner:
            x_TH = layer(x_TH, attend)
        return last(x_TH, attend.reading(read_N), read_N)

    def pool(self, first_BH: Tensor) -> Tensor:
        """As `Encoder.pool`, [B, H]: returns the states unchanged, because there is no pooler."""
        return first_BH


class Embeddings(nn.Module):
    """Token + position embeddings, followed by layer norm."""

    def __init__(self, config: DistilBertConfig) -> None:
        super().__init__()
        self.token = nn.Embedding(config.vocab_size, config.dim)
        self.position = nn.Embedding(config.max_position_embeddings, config.dim)
        self.norm = LayerNorm(config.dim, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(self, token_ids: Tensor, position_ids: Tensor) -> Tensor:
        """[T], [T] -> [T, H]."""
        x_TH = self.token(token_ids) + self.position(position_ids)
        return self.dropout(self.norm(x_TH))


class DistilBertClassificationHead(nn.Module):
    """Reads the state of [CLS], or those of tokens without the transform."""

    def __init__(self, config: DistilBertConfig) -> None:
        super().__init__()
        self.transform = None if config.reads_tokens else nn.Linear(config.dim, config.dim)
        self.dropout = Dropout(config.dropout if config.reads_tokens else config.classifier_dropout)
        self.classifier = nn.Linear(config.dim, len(config.labels))

    def forward(self, states_NH: Tensor) -> Tensor:
        """Logits [N, C] of the states [N, H]."""
        return self.classifier(self.dropout(states_NH if self.transform is None else relu(self.transform(states_NH))))
