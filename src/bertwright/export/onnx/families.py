"""The ONNX graph of each family of networks.

Dimensions of values: B texts, S tokens of the longest of them, T = B·S tokens, H hidden, C classes.
"""

from __future__ import annotations

from bertwright.export.onnx import modern, post_norm
from bertwright.export.onnx.graph import Graph
from bertwright.export.onnx.texts import Texts
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import NetworkConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.modern.network import ModernConfig


def encode(graph: Graph, config: NetworkConfig, texts: Texts) -> str:
    """The hidden states [T, H] of the last layer."""
    match config:
        case BertConfig() | DistilBertConfig():
            return post_norm.encode(graph, config, config.family, texts)
        case ModernConfig():
            return modern.encode(graph, config, texts)
        case _:
            raise AssertionError(f"{config.family} has no peer in transformers, so it is not exported")


def pool(graph: Graph, config: NetworkConfig, first: str) -> str:
    """What heads of texts read, given the states [B, H] of [CLS]: the pooler's output, or the states themselves."""
    if isinstance(config, BertConfig):
        return graph.node("Tanh", graph.linear(first, "bert.pooler.dense"))
    return first


def classify(graph: Graph, config: NetworkConfig, states: str) -> str:
    """Logits [B, C] or [T, C] of a classifier, given what `pool` returns or the states of tokens."""
    match config:
        case BertConfig():
            return graph.linear(states, "classification.classifier")
        case DistilBertConfig():
            if not config.reads_tokens:
                states = graph.node("Relu", graph.linear(states, "classification.transform"))
            return graph.linear(states, "classification.classifier")
        case ModernConfig():
            return modern.classify(graph, config, states)
        case _:
            raise AssertionError(f"{config.family} has no peer in transformers, so it is not exported")
