"""DistilBERT as ONNX.

Dimensions of values: B texts, S tokens of the longest of them, T = B·S tokens, H hidden, C classes.
"""

from __future__ import annotations

from bertwright.export.onnx import post_norm
from bertwright.export.onnx.graph import Graph
from bertwright.export.onnx.texts import Texts
from bertwright.model.distilbert.network import DistilBertConfig


def encode(graph: Graph, config: DistilBertConfig, texts: Texts) -> str:
    """The hidden states [T, H] of the last layer."""
    return post_norm.encode(graph, config, config.family, texts)


def classify(graph: Graph, config: DistilBertConfig, states: str) -> str:
    """Logits [B, C] or [T, C] of the states of [CLS] or of tokens."""
    if not config.reads_tokens:
        states = graph.node("Relu", graph.linear(states, "classification.transform"))
    return graph.linear(states, "classification.classifier")
