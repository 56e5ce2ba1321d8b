"""The encoders of all families as ONNX: token ids in, one hidden state per token out.

Dimensions of values: B texts, S tokens of the longest of them, H hidden, A heads, D head width, F inner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np

from bertwright.export.onnx.graph import INT32, Graph, Tensors
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import NetworkConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.modern.network import ModernConfig

_MASKED = -10_000.0
"""What is added to the logit of a key out of sight: its weight is 0, and float16 still has the number."""


@dataclass(frozen=True)
class Texts:
    """The names of the inputs, each [B, S]."""

    ids: str
    mask: str
    """1 for tokens, 0 for padding."""
    segments: str
    """ "" in families without segments."""


def encoder(graph: Graph, config: NetworkConfig, tensors: Tensors, texts: Texts) -> str:
    """The hidden states [B, S, H] of the last layer."""
    match config:
        case BertConfig() | DistilBertConfig():
            return _bert(graph, config, tensors, texts)
        case ModernConfig():
            return _modern(graph, config, tensors, texts)
        case _:
            assert_never(config)


def _bert(graph: Graph, config: BertConfig | DistilBertConfig, tensors: Tensors, texts: Texts) -> str:
    name, epsilon = config.family, config.layer_norm_eps
    embeddings = {part: f"{name}.embeddings.{part}" for part in ("token", "position", "segment", "norm")}
    token = graph.rows(embeddings["token"], tensors[f"{embeddings['token']}.weight"], texts.ids)
    positions = graph.constant(embeddings["position"], tensors[f"{embeddings['position']}.weight"])
    position = graph.node("Slice", positions, graph.whole(0), _length(graph, texts))
    x = graph.node("Add", token, position)
    if texts.segments:
        segment = graph.rows(embeddings["segment"], tensors[f"{embeddings['segment']}.weight"], texts.segments)
        (x,) = graph.norm(x, embeddings["norm"], tensors, epsilon, add=segment)
    else:
        (x,) = graph.norm(x, embeddings["norm"], tensors, epsilon)
    mask = graph.node("Cast", texts.mask, to=INT32)
    for number in range(config.num_hidden_layers):
        layer = f"{name}.layers.{number}"
        attended = _attention(graph, config, tensors, f"{layer}.attention", x, mask)
        product = linear(graph, tensors, attended, f"{layer}.attention.output")
        (x,) = graph.norm(product, f"{layer}.attention.norm", tensors, epsilon, add=x)
        inner = linear(graph, tensors, x, f"{layer}.feed_forward.inner")
        product = linear(graph, tensors, graph.node("Gelu", inner, fused=True), f"{layer}.feed_forward.output")
        (x,) = graph.norm(product, f"{layer}.feed_forward.norm", tensors, epsilon, add=x)
    return x


def linear(graph: Graph, tensors: Tensors, x: str, name: str) -> str:
    """The linear map `name` of the network."""
    return graph.linear(x, name, tensors[f"{name}.weight"], tensors.get(f"{name}.bias"))


def _attention(
    graph: Graph, config: BertConfig | DistilBertConfig, tensors: Tensors, name: str, x: str, mask: str
) -> str:
    """Attention of BERT with the projections of its queries, keys and values as one product."""
    parts = [f"{name}.{part}" for part in ("query", "key", "value")]
    weight_OI = np.concatenate([tensors[f"{part}.weight"] for part in parts])
    bias_O = np.concatenate([tensors[f"{part}.bias"] for part in parts])
    heads = config.num_attention_heads
    if graph.precision == "int8":
        q, k, v = _thirds(graph, graph.linear(x, f"{name}.qkv", weight_OI, bias_O), config.hidden_size)
        return graph.node("MultiHeadAttention", q, k, v, "", mask, fused=True, name=name, num_heads=heads)
    weight = graph.constant(f"{name}.qkv.weight", weight_OI.T)
    bias = graph.constant(f"{name}.qkv.bias", bias_O)
    return graph.node("Attention", x, weight, bias, mask, fused=True, name=name, num_heads=heads)


def _thirds(graph: Graph, qkv: str, width: int) -> list[str]:
    return graph.nodes("Split", [qkv, graph.whole(width, width, width)], ["_q", "_k", "_v"], attributes={"axis": -1})


def _length(graph: Graph, texts: Texts) -> str:
    """The number of tokens of the longest text, as a vector [1]."""
    return graph.node("Slice", graph.node("Shape", texts.ids), graph.whole(1), graph.whole(2))


def _modern(graph: Graph, config: ModernConfig, tensors: Tensors, texts: Texts) -> str:
    token = graph.rows("modern.embeddings.token", tensors["modern.embeddings.token.weight"], texts.ids)
    (x,) = graph.norm(token, "modern.embeddings.norm", tensors, config.norm_eps)
    mask, window = graph.node("Cast", texts.mask, to=INT32), _window(graph, config, texts)
    normed = x
    for number in range(config.num_hidden_layers):
        name, local = f"modern.layers.{number}", not config.is_global(number)
        qkv = linear(graph, tensors, normed, f"{name}.attention.qkv")
        q, k, v = _thirds(graph, qkv, config.hidden_size)
        q, k = (
            _rotated(graph, config, each, config.local_rope_theta if local else config.global_rope_theta)
            for each in (q, k)
        )
        attended = graph.node(
            "MultiHeadAttention", q, k, v, "", mask, window if local else "",
            fused=True, name=f"{name}.attention", num_heads=config.num_attention_heads,
        )  # fmt: skip
        product = linear(graph, tensors, attended, f"{name}.attention.output")
        normed, x = graph.norm(product, f"{name}.feed_forward.norm", tensors, config.norm_eps, add=x, sum_too=True)
        inner = linear(graph, tensors, normed, f"{name}.feed_forward.inner")
        half = config.intermediate_size
        value, gate = graph.nodes(
            "Split", [inner, graph.whole(half, half)], ["_value", "_gate"], attributes={"axis": -1}
        )
        gated = graph.node("Mul", graph.node("Gelu", value, fused=True), gate)
        product = linear(graph, tensors, gated, f"{name}.feed_forward.output")
        last = number + 1 == config.num_hidden_layers
        following = "modern.norm" if last else f"modern.layers.{number + 1}.attention.norm"
        normed, x = graph.norm(product, following, tensors, config.norm_eps, add=x, sum_too=True)
    return normed


def _rotated(graph: Graph, config: ModernConfig, x: str, theta: float) -> str:
    """Queries or keys, rotated by the angles of their positions."""
    width = config.hidden_size // config.num_attention_heads
    exponents = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
    angles = np.arange(config.max_position_embeddings, dtype=np.float32)[:, None] * (
        np.float32(1) / np.float32(theta) ** exponents
    )
    cos, sin = (graph.constant(f"rotation_{theta:g}.{turn.__name__}", turn(angles)) for turn in (np.cos, np.sin))
    first = graph.whole(0)
    return graph.node("RotaryEmbedding", x, first, cos, sin, fused=True)


def _window(graph: Graph, config: ModernConfig, texts: Texts) -> str:
    """What is added to the logits of local layers [1, 1, S, S]."""
    zero, one = (graph.constant(name, np.array(value, np.int64)) for name, value in (("zero", 0), ("one", 1)))
    places = graph.node("Range", zero, graph.node("Squeeze", _length(graph, texts)), one)
    column, row = (graph.node("Unsqueeze", places, graph.whole(axis)) for axis in (1, 0))
    away = graph.node("Abs", graph.node("Sub", column, row))
    reach = graph.constant("reach", np.array(config.local_attention // 2, np.int64))
    seen, hidden = (graph.constant(name, np.array(v, np.float32)) for name, v in (("seen", 0.0), ("hidden", _MASKED)))
    window = graph.node("Where", graph.node("Greater", away, reach), hidden, seen)
    return graph.node("Unsqueeze", window, graph.whole(0, 1))
