"""BERT on packed batches: Devlin et al. 2019, with the post-layer-norm encoder of Vaswani et al. 2017.

Names carry shapes: B sequences, T tokens of all sequences together, H hidden, A heads, D head width (H = A·D),
F inner, V vocabulary, P predictions.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import gelu

from bertwright.model.attention import Attend, Kernel, bind
from bertwright.model.batch import PackedBatch
from bertwright.model.config import BertConfig
from bertwright.model.heads import MaskedTokenHead, NextSentenceHead, Pooler


class BertForPreTraining(nn.Module):
    """The encoder with its two pre-training heads; all weights drawn from torch's generator (seed it first).

    Matrices start from N(0, initializer_range) without truncation as in NVIDIA's PyTorch BERT (Google's truncates
    at two standard deviations), biases from 0, layer norms from 1 and 0. `kernel` says how attention is computed;
    it changes the speed, not the function, and may be set at any time.
    """

    def __init__(self, config: BertConfig, kernel: Kernel = "sequences") -> None:
        super().__init__()
        self.config = config
        self.bert = Bert(config, kernel)
        self.mlm = MaskedTokenHead(config)
        self.nsp = NextSentenceHead(config) if config.next_sentence else None
        self.apply(self._initialise)

    def _initialise(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=self.config.initializer_range)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    def forward(self, batch: PackedBatch) -> tuple[Tensor, Tensor | None]:
        """Logits [P, V] of the masked tokens, and [B, 2] of the sequences (None without a next-sentence head)."""
        hidden_TH = self.bert(batch)
        masked_PH = hidden_TH.index_select(0, batch.prediction_positions)
        mlm_PV = self.mlm(masked_PH, self.bert.embeddings.token.weight)
        return mlm_PV, None if self.nsp is None else self.nsp(self.bert.pool(hidden_TH, batch.cu_seqlens))


class Bert(nn.Module):
    """Embeddings, encoder layers and, where the configuration has a next-sentence head, the pooler."""

    def __init__(self, config: BertConfig, kernel: Kernel) -> None:
        super().__init__()
        self.kernel: Kernel = kernel
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.pooler = Pooler(config) if config.next_sentence else None

    def forward(self, batch: PackedBatch) -> Tensor:
        """The last layer's hidden states, [T, H]."""
        attend = bind(self.kernel, batch.cu_seqlens, batch.cu_rows, batch.max_row)
        x_TH: Tensor = self.embeddings(batch.token_ids, batch.position_ids, batch.segment_ids)
        for layer in self.layers:
            x_TH = layer(x_TH, attend)
        return x_TH

    def pool(self, hidden_TH: Tensor, cu_seqlens: Tensor) -> Tensor:
        """The pooled first token ([CLS]) of each sequence, [B, H]; needs a pooler."""
        assert self.pooler is not None
        # A sequence of length 0 starts at T, beyond the last token; what it yields has weight 0.
        first_B = cu_seqlens[:-1].clamp(max=len(hidden_TH) - 1)
        pooled_BH: Tensor = self.pooler(hidden_TH.index_select(0, first_B))
        return pooled_BH


class Embeddings(nn.Module):
    """Token + position + segment embeddings, normalised (Devlin et al. 2019 figure 2)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.token = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.segment = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, token_ids: Tensor, position_ids: Tensor, segment_ids: Tensor) -> Tensor:
        """Three times [T] -> [T, H]."""
        x_TH = self.token(token_ids) + self.position(position_ids) + self.segment(segment_ids)
        return self.dropout(self.norm(x_TH))  # type: ignore[no-any-return]


class Layer(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config)
        self.feed_forward = FeedForward(config)

    def forward(self, x_TH: Tensor, attend: Attend) -> Tensor:
        """[T, H] -> [T, H]."""
        return self.feed_forward(self.attention(x_TH, attend))  # type: ignore[no-any-return]


class SelfAttention(nn.Module):
    """Multi-head self-attention with its residual and layer norm.

    Query, key and value stay three tensors, because LAMB's trust ratio is one number per tensor.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads = (config.num_attention_heads, width // config.num_attention_heads)
        self.attention_dropout = config.attention_probs_dropout_prob
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x_TH: Tensor, attend: Attend) -> Tensor:
        """[T, H] -> [T, H]."""
        projections = (self.query, self.key, self.value)
        q_TAD, k_TAD, v_TAD = (project(x_TH).unflatten(-1, self.heads) for project in projections)
        attended_TAD = attend(q_TAD, k_TAD, v_TAD, self.attention_dropout if self.training else 0.0)
        y_TH = self.dropout(self.output(attended_TAD.flatten(-2)))
        return self.norm(x_TH + y_TH)  # type: ignore[no-any-return]


class FeedForward(nn.Module):
    """Two linear maps with a GELU between them, with residual and layer norm."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.hidden_size, config.intermediate_size)
        self.output = nn.Linear(config.intermediate_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x_TH: Tensor) -> Tensor:
        """[T, H] -> [T, H]."""
        y_TH = self.dropout(self.output(gelu(self.inner(x_TH))))
        return self.norm(x_TH + y_TH)  # type: ignore[no-any-return]
