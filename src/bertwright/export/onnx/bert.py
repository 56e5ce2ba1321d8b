"""BERT as ONNX. Dimensions of values: B texts, S tokens of the longest of them, T = B·S tokens, H hidden, C classes."""

from __future__ import annotations

from bertwright.export.onnx import post_norm
from bertwright.export.onnx.graph import Graph
from bertwright.export.onnx.texts import Texts
from bertwright.model.bert.network import BertConfig


def encode(graph: Graph, config: BertConfig, texts: Texts) -> str:
    """The hidden states [T, H] of the last layer."""
    return post_norm.encode(graph, config, config.family, texts)


def pool(graph: Graph, first: str) -> str:
    """The pooler's output for the states [B, H] of [CLS]."""
    return graph.node("Tanh", graph.linear(first, "bert.pooler.dense"))


def classify(graph: Graph, config: BertConfig, states: str) -> str:
    """Logits [B, C] or [T, C] of the pooler's output or of the states of tokens."""
    return graph.linear(states, "classification.classifier")
