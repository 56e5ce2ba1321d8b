"""The inputs of a network that reads texts.

Dimensions of values: B texts, S tokens of the longest of them.
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
