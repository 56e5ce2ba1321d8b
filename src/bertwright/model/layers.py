"""The post-layer-norm encoder layer of Vaswani et al. 2017, as used by BERT and DistilBERT, and the pooler.

Names carry shapes: B sequences, T tokens of all sequences together, N tokens whose states are read, Q tokens whose
queries the kernel takes (T or N), H hidden, A heads, D head width (H = A·D), F inner.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from bertwright.model.attention.kernel import Attend, read
from bertwright.model.config import LayerKernels
from bertwright.model.dropout import Dropout
from bertwright.model.fused import product_add_norm, product_gelu
from bertwright.model.norm import LayerNorm


class PostNormConfig(Protocol):
    """The numbers of a network that is built from these layers; see `BertConfig`."""

    @property
    def hidden_size(self) -> int:
        """Width of the hidden state."""

    @property
    def num_attention_heads(self) -> int:
        """Number of attention heads; divides hidden_size."""

    @property
    def intermediate_size(self) -> int:
        """Width of the feed-forward layer."""

    @property
    def hidden_dropout_prob(self) -> float:
        """Dropout probability of the feed-forward layer's output."""

    @property
    def attention_probs_dropout_prob(self) -> float:
        """Dropout probability of attention weights."""

    @property
    def attention_output_dropout(self) -> float:
        """Dropout probability of the output of attention, before it is added to the residual."""

    @property
    def layer_norm_eps(self) -> float:
        """Epsilon of layer norms, added to the variance."""


class Layer(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(self, config: PostNormConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config)
        self.feed_forward = FeedForward(config)

    def forward(self, x_TH: Tensor, attend: Attend, read_N: Tensor | None = None) -> Tensor:
        """[T, H] -> [T, H], or [N, H] where only the states of the tokens `read_N` [N] are read."""
        return self.feed_forward(self.attention(x_TH, attend, read_N))


class SelfAttention(nn.Module):
    """Multi-head self-attention with its residual and layer norm."""

    kernels: LayerKernels = "torch"
    """How what follows its products is computed: it changes the speed, not the function; see `use_kernels`."""

    def __init__(self, config: PostNormConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads = (config.num_attention_heads, width // config.num_attention_heads)
        self.attention_dropout = config.attention_probs_dropout_prob
        # Three tensors instead of one, because LAMB's trust ratio is one number per tensor.
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.norm = LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.attention_output_dropout)

    def forward(self, x_TH: Tensor, attend: Attend, read_N: Tensor | None = None) -> Tensor:
        """[T, H] -> [T, H], or [N, H] where only the states of the tokens `read_N` [N] are read."""
        read_NH = read(x_TH, read_N)
        q_QAD = self.query(x_TH if attend.read_N is None else read_NH).view(-1, *self.heads)
        k_TAD, v_TAD = (project(x_TH).view(-1, *self.heads) for project in (self.key, self.value))
        # `scaled_dot_product_attention` ignores train and eval mode, so its dropout must be turned off here.
        attended_QH = attend(q_QAD, k_TAD, v_TAD, self.attention_dropout if self.training else 0.0).flatten(-2)
        attended_NH = read(attended_QH, read_N) if attend.read_N is None else attended_QH
        return product_add_norm(attended_NH, read_NH, self.output, self.dropout, self.norm, self.kernels)


class FeedForward(nn.Module):
    """Two linear maps with a GELU between them, with residual and layer norm."""

    kernels: LayerKernels = "torch"
    """As `SelfAttention.kernels`."""

    def __init__(self, config: PostNormConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.hidden_size, config.intermediate_size)
        self.output = nn.Linear(config.intermediate_size, config.hidden_size)
        self.norm = LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, x_TH: Tensor) -> Tensor:
        """[T, H] -> [T, H]."""
        inner_TF = product_gelu(x_TH, self.inner, self.kernels)
        return product_add_norm(inner_TF, x_TH, self.output, self.dropout, self.norm, self.kernels)


def use_kernels(network: nn.Module, kernels: LayerKernels) -> None:
    """Compute what follows the products of a network's layers with these kernels; those of a CPU are torch's."""
    for module in network.modules():
        if isinstance(module, SelfAttention | FeedForward):
            module.kernels = kernels


class Pooler(nn.Module):
    """A linear map and tanh on the hidden state of [CLS]."""

    def __init__(self, config: PostNormConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, first_BH: Tensor) -> Tensor:
        """[B, H] -> [B, H]."""
        return torch.tanh(self.dense(first_BH))
