"""BERT's encoder on packed batches (Devlin et al. 2019), and its classification head.

Names carry shapes: B sequences, T tokens of all sequences together, N tokens whose states are read, H hidden, V
vocabulary, C classes.
"""

from __future__ import annotations

from torch import Tensor, nn

from bertwright.model.attention.kernel import bind
from bertwright.model.batch import PackedBatch
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import Kernel
from bertwright.model.dropout import Dropout
from bertwright.model.layers import Layer, Pooler
from bertwright.model.norm import LayerNorm


class Bert(nn.Module):
    """Embeddings, encoder layers and, if a head of the configuration needs it, the pooler; see `Encoder`."""

    def __init__(self, config: BertConfig, kernel: Kernel) -> None:
        super().__init__()
        self.kernel: Kernel = kernel
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.pooler = Pooler(config) if config.pooler else None

    @property
    def token_weight(self) -> Tensor:
        """As `Encoder.token_weight`, [V, H]."""
        return self.embeddings.token.weight

    def forward(self, batch: PackedBatch, read_N: Tensor | None = None) -> Tensor:
        """As `Encoder.__call__`: [T, H], or [N, H]."""
        # Bind once per batch; otherwise every layer would recompute the same indices (docs/decisions/0004).
        attend = bind(self.kernel, batch)
        x_TH: Tensor = self.embeddings(batch.token_ids, batch.position_ids, batch.segment_ids)
        *inner, last = self.layers
        for layer in inner:
            x_TH = layer(x_TH, attend)
        return last(x_TH, attend.reading(read_N), read_N)

    def pool(self, first_BH: Tensor) -> Tensor:
        """As `Encoder.pool`, [B, H]; requires a pooler."""
        assert self.pooler is not None
        pooled_BH: Tensor = self.pooler(first_BH)
        return pooled_BH


class Embeddings(nn.Module):
    """Token + position + segment embeddings, followed by layer norm (Devlin et al. 2019 figure 2)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.token = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.segment = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, token_ids: Tensor, position_ids: Tensor, segment_ids: Tensor) -> Tensor:
        """[T], [T], [T] -> [T, H]."""
        x_TH = self.token(token_ids) + self.position(position_ids) + self.segment(segment_ids)
        return self.dropout(self.norm(x_TH))


class BertClassificationHead(nn.Module):
    """Reads the pooler's output, or the states of tokens."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        # As in transformers, whose head for answers has none.
        self.dropout = Dropout(0.0 if config.head == "span" else config.classifier_dropout)
        self.classifier = nn.Linear(config.hidden_size, len(config.labels))

    def forward(self, states_NH: Tensor) -> Tensor:
        """Logits [N, C] of the states [N, H]."""
        return self.classifier(self.dropout(states_NH))
