"""ModernBERT's encoder on packed batches (Warner et al. 2024 §2.1), and its classification head.

The details follow transformers' ModernBertModel; with copied weights, both agree. Names carry shapes: B sequences, T
tokens of all sequences together, N tokens whose states are read, Q tokens whose queries the kernel takes (T or N), H
hidden, V vocabulary, A heads, D head width (H = A·D), F inner, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor, nn
from torch.nn.functional import gelu

from bertwright.model.attention.kernel import Attend, bind, read
from bertwright.model.batch import PackedBatch
from bertwright.model.config import Kernel
from bertwright.model.dropout import Dropout
from bertwright.model.modern.network import ModernConfig
from bertwright.model.modern.rotary import Projection, Rotation, rotation
from bertwright.model.norm import LayerNorm


@dataclass(frozen=True)
class View:
    """The attention and rotation that all global, or all local, layers use for a batch."""

    attend: Attend
    rotation: Rotation


class Modern(nn.Module):
    """Embeddings, pre-layer-norm encoder layers and the final norm; see `Encoder`. It has no biases, no segments and no
    pooler."""

    def __init__(self, config: ModernConfig, kernel: Kernel) -> None:
        super().__init__()
        self.kernel: Kernel = kernel
        self.config = config
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(Layer(config, number) for number in range(config.num_hidden_layers))
        self.norm = _norm(config)

    @property
    def token_weight(self) -> Tensor:
        """As `Encoder.token_weight`, [V, H]."""
        return self.embeddings.token.weight

    def forward(self, batch: PackedBatch, read_N: Tensor | None = None) -> Tensor:
        """As `Encoder.__call__`: [T, H], or [N, H]; segment ids are not read."""
        kinds = [self.config.is_global(number) for number in range(len(self.layers))]
        views = {kind: self._view(batch, kind) for kind in set(kinds)}
        x_TH: Tensor = self.embeddings(batch.token_ids)
        *inner, last = self.layers
        for layer, kind in zip(inner, kinds, strict=False):
            x_TH = layer(x_TH, views[kind])
        view = views[kinds[-1]]
        return self.norm(last(x_TH, replace(view, attend=view.attend.reading(read_N)), read_N))

    def pool(self, first_BH: Tensor) -> Tensor:
        """As `Encoder.pool`, [B, H]: returns the states unchanged, because there is no pooler."""
        return first_BH

    def _view(self, batch: PackedBatch, is_global: bool) -> View:
        """Build the view of all global, or all local, layers. Done once per batch; otherwise every layer of the kind
        would recompute the same values (docs/decisions/0004)."""
        config = self.config
        theta = config.global_rope_theta if is_global else config.local_rope_theta
        width = config.hidden_size // config.num_attention_heads
        attend = bind(self.kernel, batch, None if is_global else config.local_attention)
        return View(attend, rotation(batch.position_ids, width, theta))


class Embeddings(nn.Module):
    """Token embeddings, followed by layer norm; attention adds the positions."""

    def __init__(self, config: ModernConfig) -> None:
        super().__init__()
        self.token = nn.Embedding(config.vocab_size, config.hidden_size)
        self.norm = _norm(config)
        self.dropout = Dropout(config.embedding_dropout)

    def forward(self, token_ids: Tensor) -> Tensor:
        """[T] -> [T, H]."""
        return self.dropout(self.norm(self.token(token_ids)))


class Layer(nn.Module):
    """Self-attention, global or local, then the gated feed-forward network."""

    def __init__(self, config: ModernConfig, number: int) -> None:
        super().__init__()
        self.attention = SelfAttention(config, number)
        self.feed_forward = FeedForward(config)

    def forward(self, x_TH: Tensor, view: View, read_N: Tensor | None = None) -> Tensor:
        """[T, H] -> [T, H], or [N, H] where only the states of the tokens `read_N` [N] are read."""
        return self.feed_forward(self.attention(x_TH, view, read_N))


class SelfAttention(nn.Module):
    """Layer norm and multi-head self-attention with rotated queries and keys, added to the residual."""

    def __init__(self, config: ModernConfig, number: int) -> None:
        super().__init__()
        width = config.hidden_size
        self.attention_dropout = config.attention_dropout
        # The embeddings have already normalised the first layer's input.
        self.norm = _norm(config) if number else nn.Identity()
        # One tensor, as in the reference, so that exporting only renames it.
        self.qkv = Projection(width, config.num_attention_heads)
        self.output = nn.Linear(width, width, bias=False)
        self.dropout = Dropout(config.attention_dropout)

    def forward(self, x_TH: Tensor, view: View, read_N: Tensor | None = None) -> Tensor:
        """[T, H] -> [T, H], or [N, H] where only the states of the tokens `read_N` [N] are read."""
        q_TAD, k_TAD, v_TAD = self.qkv.rotated(self.norm(x_TH), view.rotation)
        q_QAD = read(q_TAD, view.attend.read_N)
        # Kernels ignore train and eval mode, so their dropout must be turned off here.
        attended_QH = view.attend(q_QAD, k_TAD, v_TAD, self.attention_dropout if self.training else 0.0).flatten(-2)
        attended_NH = read(attended_QH, read_N) if view.attend.read_N is None else attended_QH
        return read(x_TH, read_N) + self.dropout(self.output(attended_NH))


class FeedForward(nn.Module):
    """Layer norm and a gated feed-forward network (GeGLU, Shazeer 2020), added to the residual."""

    def __init__(self, config: ModernConfig) -> None:
        super().__init__()
        self.norm = _norm(config)
        self.inner = nn.Linear(config.hidden_size, 2 * config.intermediate_size, bias=False)
        self.output = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)
        self.dropout = Dropout(config.mlp_dropout)

    def forward(self, x_TH: Tensor) -> Tensor:
        """[T, H] -> [T, H]."""
        value_TF, gate_TF = self.inner(self.norm(x_TH)).chunk(2, dim=-1)
        return x_TH + self.output(self.dropout(gelu(value_TF) * gate_TF))


def _norm(config: ModernConfig) -> LayerNorm:
    return LayerNorm(config.hidden_size, eps=config.norm_eps, bias=False)


class ModernClassificationHead(nn.Module):
    """Reads the state of [CLS], or those of tokens."""

    def __init__(self, config: ModernConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.transform = nn.Linear(width, width, bias=False)
        self.norm = LayerNorm(width, eps=config.norm_eps, bias=False)
        self.dropout = Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(width, len(config.labels))

    def forward(self, states_NH: Tensor) -> Tensor:
        """Logits [N, C] of the states [N, H]."""
        transformed_NH = self.norm(gelu(self.transform(states_NH)))
        return self.classifier(self.dropout(transformed_NH))
