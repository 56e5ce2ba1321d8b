"""ModernBERT as ONNX.

Dimensions of values: B texts, S tokens of the longest of them, T = B·S tokens, H hidden, C classes.
"""

from __future__ import annotations

import numpy as np

from bertwright.export.onnx.graph import INT32, Graph
from bertwright.export.onnx.texts import Texts
from bertwright.model.modern.network import ModernConfig

_UNSEEN = -10_000.0
"""What is added to the logit of a key outside the window: its weight is 0, and float16 still has the number."""


def encode(graph: Graph, config: ModernConfig, texts: Texts) -> str:
    """The hidden states [T, H] of the last layer."""
    token = texts.rows(graph, graph.rows("modern.embeddings.token", texts.ids), config.hidden_size)
    x = normed = graph.norm(token, "modern.embeddings.norm", config.norm_eps)
    zero, one = (graph.constant(name, np.array(value)) for name, value in (("zero", 0), ("one", 1)))
    places = graph.node("Range", zero, graph.node("Squeeze", texts.length(graph)), one)
    # ONNX Runtime would also take a single 0, which OpenVINO takes as the position of each token.
    positions = graph.node("Expand", places, graph.node("Shape", texts.ids))
    mask, window = graph.node("Cast", texts.mask, to=INT32), _window(graph, config, places)
    last = config.num_hidden_layers - 1
    for number in range(config.num_hidden_layers):
        name = f"modern.layers.{number}"
        seen = (mask, "" if config.is_global(number) else window)
        attended = _attended(graph, config, number, texts, normed, (positions, *seen))
        product = graph.linear(attended, f"{name}.attention.output", twice=False)
        normed, x = graph.add_norm(product, x, f"{name}.feed_forward.norm", config.norm_eps)
        half = config.intermediate_size
        value, gate = graph.split(graph.linear(normed, f"{name}.feed_forward.inner"), half, half)
        gated = graph.node("Mul", graph.node("Gelu", value, fused=True), gate)
        following = "modern.norm" if number == last else f"modern.layers.{number + 1}.attention.norm"
        normed, x = graph.add_norm(graph.linear(gated, f"{name}.feed_forward.output"), x, following, config.norm_eps)
    return normed


def classify(graph: Graph, config: ModernConfig, states: str) -> str:
    """Logits [B, C] or [T, C] of the states of [CLS] or of tokens."""
    x = graph.node("Gelu", graph.linear(states, "classification.transform"), fused=True)
    return graph.linear(graph.norm(x, "classification.norm", config.norm_eps), "classification.classifier")


def _attended(
    graph: Graph, config: ModernConfig, number: int, texts: Texts, x: str, places: tuple[str, str, str]
) -> str:
    """Attention of layer `number` at positions [B, S] to the keys that mask and window leave."""
    positions, *seen = places
    width = config.hidden_size
    qkv = texts.by_text(graph, graph.linear(x, f"modern.layers.{number}.attention.qkv"))
    theta = config.global_rope_theta if config.is_global(number) else config.local_rope_theta
    q, k, v = graph.split(qkv, width, width, width)
    q, k = (_rotated(graph, config, each, positions, theta) for each in (q, k))
    heads = config.num_attention_heads
    attended = graph.node("MultiHeadAttention", q, k, v, "", *filter(None, seen), fused=True, num_heads=heads)
    return texts.rows(graph, attended, width)


def _rotated(graph: Graph, config: ModernConfig, x: str, positions: str, theta: float) -> str:
    """Queries or keys, rotated by the angles of their positions."""
    width, one = config.hidden_size // config.num_attention_heads, np.float32(1)
    # In float32, step by step as transformers, whose angles at distant positions differ from the exact ones.
    exponents = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
    angles = np.arange(config.max_position_embeddings, dtype=np.float32)[:, None] * (
        one / np.float32(theta) ** exponents
    )
    cos, sin = graph.constant(f"cos_{theta:g}", np.cos(angles)), graph.constant(f"sin_{theta:g}", np.sin(angles))
    return graph.node("RotaryEmbedding", x, positions, cos, sin, fused=True, interleaved=0)


def _window(graph: Graph, config: ModernConfig, places: str) -> str:
    """What local layers add to the logits of queries and keys: 0 or `_UNSEEN` [1, 1, S, S]."""
    away = graph.node("Sub", *(graph.node("Unsqueeze", places, graph.whole(axis)) for axis in (1, 0)))
    reach = graph.constant("reach", np.array(config.local_attention // 2))
    seen, unseen = (graph.constant(*each) for each in (("seen", np.array(0.0)), ("unseen", np.array(_UNSEEN))))
    window = graph.node("Where", graph.node("Greater", graph.node("Abs", away), reach), unseen, seen)
    return graph.node("Unsqueeze", window, graph.whole(0, 1))
