"""The shape of every parameter by its name, from a network's numbers alone: what memory, partitions and patterns of
names are told from before there is a network. Names and order are those of `named_parameters`. Knows no torch."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

TensorShapes = dict[str, tuple[int, ...]]
"""The shape of each parameter by its name."""


def elements(tensors: Mapping[str, tuple[int, ...]]) -> int:
    """The numbers in all of them."""
    return sum(map(prod, tensors.values()))


def linear(name: str, outputs: int, inputs: int, bias: bool = True) -> TensorShapes:
    """A linear map of so many inputs to so many outputs."""
    shapes: TensorShapes = {f"{name}.weight": (outputs, inputs)}
    return {**shapes, f"{name}.bias": (outputs,)} if bias else shapes


def norm(name: str, width: int, bias: bool = True) -> TensorShapes:
    """A layer norm."""
    return {f"{name}.{part}": (width,) for part in ("weight", "bias") if bias or part == "weight"}


def embeddings(name: str, rows: Mapping[str, int], width: int, bias: bool = True) -> TensorShapes:
    """Embeddings of so many rows each, and the norm of their sum."""
    tables: TensorShapes = {f"{name}.{each}.weight": (n, width) for each, n in rows.items()}
    return tables | norm(f"{name}.norm", width, bias)


def bert_layers(name: str, layers: int, hidden: int, inner: int) -> TensorShapes:
    """The layers of a BERT or DistilBERT."""
    shapes: TensorShapes = {}
    for layer in (f"{name}.layers.{index}" for index in range(layers)):
        for part in ("query", "key", "value", "output"):
            shapes |= linear(f"{layer}.attention.{part}", hidden, hidden)
        shapes |= norm(f"{layer}.attention.norm", hidden)
        shapes |= linear(f"{layer}.feed_forward.inner", inner, hidden)
        shapes |= linear(f"{layer}.feed_forward.output", hidden, inner)
        shapes |= norm(f"{layer}.feed_forward.norm", hidden)
    return shapes


def masked_token_head(hidden: int, vocabulary: int, biases: bool = True, decoder_bias: bool = True) -> TensorShapes:
    """The head that compares hidden states with the embedding of every entry, whose weights are the encoder's."""
    bias: TensorShapes = {"mlm.bias": (vocabulary,)} if decoder_bias else {}
    return bias | linear("mlm.transform", hidden, hidden, biases) | norm("mlm.norm", hidden, biases)
