"""A published network with its head as an ONNX model, with the names of inputs and outputs that optimum and
transformers.js use.

Dimensions of values: B texts, N choices, S tokens of the longest text, H hidden, C classes, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bertwright.export.onnx.graph import Graph, Precision, Tensors
from bertwright.export.onnx.network import Texts, encoder, linear
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import NetworkConfig
from bertwright.model.distilbert.network import DistilBertConfig

if TYPE_CHECKING:
    from onnx import ModelProto

IDS, MASK, SEGMENTS = "input_ids", "attention_mask", "token_type_ids"
HIDDEN, LOGITS, PAIRS = "last_hidden_state", "logits", "seq_relationship_logits"
ENDS = ("start_logits", "end_logits")
_BATCH = ("batch_size", "sequence_length")
_CHOICES = ("batch_size", "num_choices", "sequence_length")
Value = tuple[str, tuple[str | int, ...]]


def onnx_model(config: NetworkConfig, tensors: Tensors, precision: Precision) -> ModelProto:
    """The network with the given tensors, under this project's names.

    Its inputs are `input_ids`, `attention_mask` and, of a BERT, `token_type_ids` [B, S], of a choice [B, N, S]. Its
    outputs are `logits`, of the span `start_logits` and `end_logits`, of an encoder `last_hidden_state`, and of one
    with the head for masked tokens both, with `seq_relationship_logits` where it has that head.
    """
    graph = Graph(precision)
    chooses = bool(config.labels) and config.head == "choice"
    names = [IDS, MASK, *([SEGMENTS] if isinstance(config, BertConfig) else [])]
    shape = _CHOICES if chooses else _BATCH
    flat = [_rows(graph, name) if chooses else name for name in names]
    hidden = encoder(graph, config, tensors, Texts(flat[0], flat[1], flat[2] if len(flat) > 2 else ""))
    outputs: dict[str, Value]
    if config.labels:
        outputs = _classified(graph, config, tensors, hidden)
    else:
        outputs = {HIDDEN: (hidden, (*_BATCH, config.hidden_size))}
        if "mlm.transform.weight" in tensors:
            outputs = {LOGITS: (_masked(graph, config, tensors, hidden), (*_BATCH, config.vocab_size)), **outputs}
        if "nsp.classifier.weight" in tensors:
            pair = linear(graph, tensors, _pooled(graph, config, tensors, hidden), "nsp.classifier")
            outputs[PAIRS] = (pair, (_BATCH[0], 2))
    return graph.model(dict.fromkeys(names, shape), outputs)


def _rows(graph: Graph, name: str) -> str:
    """Choices as texts: [B, N, S] -> [B·N, S]."""
    return graph.node(
        "Reshape",
        name,
        graph.node(
            "Concat",
            graph.whole(-1),
            graph.node("Slice", graph.node("Shape", name), graph.whole(2), graph.whole(3)),
            axis=0,
        ),
    )


def _masked(graph: Graph, config: NetworkConfig, tensors: Tensors, hidden: str) -> str:
    """The logits [B, S, V] of every token."""
    x = graph.node("Gelu", linear(graph, tensors, hidden, "mlm.transform"), fused=True)
    epsilon = _epsilon(config)
    (x,) = graph.norm(x, "mlm.norm", tensors, epsilon)
    return graph.decoder(
        x,
        f"{config.family}.embeddings.token",
        tensors[f"{config.family}.embeddings.token.weight"],
        tensors.get("mlm.bias"),
    )


def _epsilon(config: NetworkConfig) -> float:
    return config.norm_eps if not isinstance(config, BertConfig | DistilBertConfig) else config.layer_norm_eps


def _first(graph: Graph, hidden: str) -> str:
    """The states of [CLS]: [B, S, H] -> [B, H]."""
    import numpy as np

    return graph.node("Gather", hidden, graph.constant("zero", np.array(0, np.int64)), axis=1)


def _pooled(graph: Graph, config: NetworkConfig, tensors: Tensors, hidden: str) -> str:
    first = _first(graph, hidden)
    if isinstance(config, BertConfig):
        return graph.node("Tanh", linear(graph, tensors, first, "bert.pooler.dense"))
    return first


def _classified(graph: Graph, config: NetworkConfig, tensors: Tensors, hidden: str) -> dict[str, Value]:
    x, classes = hidden if config.reads_tokens else _pooled(graph, config, tensors, hidden), len(config.labels)
    if isinstance(config, DistilBertConfig):
        if not config.reads_tokens:
            x = graph.node("Relu", linear(graph, tensors, x, "classification.transform"))
    elif not isinstance(config, BertConfig):
        x = graph.node("Gelu", linear(graph, tensors, x, "classification.transform"), fused=True)
        (x,) = graph.norm(x, "classification.norm", tensors, config.norm_eps)
    logits = linear(graph, tensors, x, "classification.classifier")
    match config.head:
        case "token":
            return {LOGITS: (logits, (*_BATCH, classes))}
        case "span":
            ends = graph.nodes("Split", [logits, graph.whole(1, 1)], ["_start", "_end"], attributes={"axis": -1})
            return {
                name: (graph.node("Squeeze", end, graph.whole(-1)), _BATCH)
                for name, end in zip(ENDS, ends, strict=True)
            }
        case "choice":
            shape = graph.node("Slice", graph.node("Shape", "input_ids"), graph.whole(0), graph.whole(2))
            return {LOGITS: (graph.node("Reshape", logits, shape), _CHOICES[:2])}
    return {LOGITS: (logits, (_BATCH[0], classes))}
