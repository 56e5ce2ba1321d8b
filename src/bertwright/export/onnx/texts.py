"""The inputs of a network that reads texts.

Dimensions of values: B texts, S tokens of the longest of them, T = B·S tokens, H hidden.
"""

from __future__ import annotations

from dataclasses import dataclass

from bertwright.export.onnx.graph import Graph


@dataclass(frozen=True)
class Texts:
    """The names of values [B, S] of integers."""

    ids: str
    mask: str
    """1 for tokens, 0 for padding."""
    segments: str
    """"" for a network without segments."""

    def length(self, graph: Graph) -> str:
        """S, as a vector of one number."""
        return graph.node("Slice", graph.node("Shape", self.ids), graph.whole(1), graph.whole(2))

    def rows(self, graph: Graph, x: str, width: int) -> str:
        """Values of tokens as a matrix, for products and norms: [B, S, H] -> [T, H]."""
        return graph.node("Reshape", x, graph.whole(-1, width))

    def by_text(self, graph: Graph, x: str) -> str:
        """Values of tokens by their texts: [T, H] -> [B, S, H]."""
        return graph.node("Reshape", x, graph.node("Concat", graph.node("Shape", self.ids), graph.whole(-1), axis=0))
