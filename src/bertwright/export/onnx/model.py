"""A network with its head as an ONNX model, with the names of inputs and outputs that optimum and transformers.js use.

Dimensions of values: B texts, N choices, S tokens of the longest text, H hidden, C classes, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertwright.export.onnx.families import classify, encode, pool
from bertwright.export.onnx.graph import Graph, Precision
from bertwright.export.onnx.texts import Texts
from bertwright.model.config import NetworkConfig

if TYPE_CHECKING:
    from onnx import ModelProto

IDS, MASK, SEGMENTS = "input_ids", "attention_mask", "token_type_ids"
HIDDEN, LOGITS, PAIRS = "last_hidden_state", "logits", "seq_relationship_logits"
ENDS = ("start_logits", "end_logits")
_TEXTS = ("batch_size", "sequence_length")
_CHOICES = ("batch_size", "num_choices", "sequence_length")
Value = tuple[str, tuple[str | int, ...]]
"""The name of a value in the graph, and its dimensions."""


def onnx_model(config: NetworkConfig, tensors: Mapping[str, NDArray[Any]], precision: Precision) -> ModelProto:
    """The network with the given tensors, which have this project's names.

    Its inputs are `input_ids`, `attention_mask` and, if it has segments, `token_type_ids` [B, S], of a choice
    [B, N, S]. Its outputs are `logits`, of the ends of answers `start_logits` and `end_logits`; without a classifier
    `last_hidden_state`, beside the `logits` and `seq_relationship_logits` of the heads that it has.
    """
    graph, chooses = Graph(tensors, precision), bool(config.labels) and config.head == "choice"
    names = [IDS, MASK, *([SEGMENTS] if config.segments else [])]
    ids, mask, segments = [*(_flat(graph, name) if chooses else name for name in names), ""][:3]
    texts = Texts(ids, mask, segments)
    states = encode(graph, config, texts)
    outputs = (_classified if config.labels else _pretrained)(graph, config, texts, states)
    return graph.model(dict.fromkeys(names, _CHOICES if chooses else _TEXTS), outputs)


def _flat(graph: Graph, name: str) -> str:
    """Choices as texts: [B, N, S] -> [B·N, S]."""
    length = graph.node("Slice", graph.node("Shape", name), graph.whole(2), graph.whole(3))
    return graph.node("Reshape", name, graph.node("Concat", graph.whole(-1), length, axis=0))


def _pretrained(graph: Graph, config: NetworkConfig, texts: Texts, states: str) -> dict[str, Value]:
    outputs: dict[str, Value] = {}
    if "mlm.transform.weight" in graph.tensors:
        x = graph.node("Gelu", graph.linear(states, "mlm.transform"), fused=True)
        x = graph.norm(x, "mlm.norm", config.layer_norm_eps)
        logits = graph.decoder(x, f"{config.family}.embeddings.token", graph.parameter("mlm.bias"))
        outputs[LOGITS] = (texts.by_text(graph, logits), (*_TEXTS, config.vocab_size))
    hidden = texts.by_text(graph, states)
    outputs[HIDDEN] = (hidden, (*_TEXTS, config.hidden_size))
    if "nsp.classifier.weight" in graph.tensors:
        outputs[PAIRS] = (graph.linear(_pooled(graph, config, hidden), "nsp.classifier"), (_TEXTS[0], 2))
    return outputs


def _classified(graph: Graph, config: NetworkConfig, texts: Texts, states: str) -> dict[str, Value]:
    if config.reads_tokens:
        logits = texts.by_text(graph, classify(graph, config, states))
    else:
        logits = classify(graph, config, _pooled(graph, config, texts.by_text(graph, states)))
    match config.head:
        case "token":
            return {LOGITS: (logits, (*_TEXTS, len(config.labels)))}
        case "span":
            ends = zip(ENDS, graph.split(logits, 1, 1), strict=True)
            return {name: (graph.node("Squeeze", end, graph.whole(-1)), _TEXTS) for name, end in ends}
        case "choice":
            shape = graph.node("Slice", graph.node("Shape", IDS), graph.whole(0), graph.whole(2))
            return {LOGITS: (graph.node("Reshape", logits, shape), _CHOICES[:2])}
    return {LOGITS: (logits, (_TEXTS[0], len(config.labels)))}


def _pooled(graph: Graph, config: NetworkConfig, hidden: str) -> str:
    """What heads of texts read of [CLS]: [B, S, H] -> [B, H]."""
    first = graph.node("Gather", hidden, graph.constant("zero", np.array(0)), axis=1)
    return pool(graph, config, first)
