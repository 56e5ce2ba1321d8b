"""The layers of BERT and DistilBERT, and their embeddings, as ONNX.

Dimensions of values: B texts, S tokens of the longest of them, T = B·S tokens, H hidden.
"""

from __future__ import annotations

from typing import Protocol

from bertwright.export.onnx.graph import INT32, Graph
from bertwright.export.onnx.texts import Texts


class PostNormNetwork(Protocol):
    """The numbers of a network that is built from these layers."""

    @property
    def num_hidden_layers(self) -> int:
        """Number of layers."""

    @property
    def num_attention_heads(self) -> int:
        """Number of attention heads per layer."""

    @property
    def hidden_size(self) -> int:
        """Width of the hidden state."""

    @property
    def layer_norm_eps(self) -> float:
        """Epsilon of layer norms."""


def encode(graph: Graph, config: PostNormNetwork, family: str, texts: Texts) -> str:
    """The hidden states [T, H] of the last layer, of the network whose tensors are named after `family`."""
    mask, x = graph.node("Cast", texts.mask, to=INT32), _embedded(graph, config, f"{family}.embeddings", texts)
    for number in range(config.num_hidden_layers):
        attention, forward = (f"{family}.layers.{number}.{part}" for part in ("attention", "feed_forward"))
        attended = _attended(graph, config, attention, x, texts, mask)
        product = graph.linear(attended, f"{attention}.output", twice=False)
        x, _ = graph.add_norm(product, x, f"{attention}.norm", config.layer_norm_eps)
        inner = graph.node("Gelu", graph.linear(x, f"{forward}.inner"), fused=True)
        product = graph.linear(inner, f"{forward}.output")
        x, _ = graph.add_norm(product, x, f"{forward}.norm", config.layer_norm_eps)
    return x


def _embedded(graph: Graph, config: PostNormNetwork, name: str, texts: Texts) -> str:
    places = graph.node("Slice", graph.parameter(f"{name}.position.weight"), graph.whole(0), texts.length(graph))
    x = graph.node("Add", graph.rows(f"{name}.token", texts.ids), places)
    if texts.segments:
        x = graph.node("Add", x, graph.rows(f"{name}.segment", texts.segments))
    return graph.norm(texts.rows(graph, x, config.hidden_size), f"{name}.norm", config.layer_norm_eps)


def _attended(graph: Graph, config: PostNormNetwork, name: str, x: str, texts: Texts, mask: str) -> str:
    """Attention, whose operator adds the biases of queries, keys and values while it orders them by heads."""
    width, maps = config.hidden_size, [f"{name}.{part}" for part in ("query", "key", "value")]
    q, k, v = graph.split(texts.by_text(graph, graph.product(x, *maps)), width, width, width)
    inputs, heads = (q, k, v, graph.bias(*maps), mask), config.num_attention_heads
    return texts.rows(graph, graph.node("MultiHeadAttention", *inputs, fused=True, num_heads=heads), width)
