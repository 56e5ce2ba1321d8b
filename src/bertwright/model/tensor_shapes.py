"""The shape of every parameter by name, from a network's configuration only. Memory estimates, partitions and name
patterns use it before the network exists. Names and order are those of `named_parameters`. Does not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

TensorShapes = dict[str, tuple[int, ...]]
"""The shape of each parameter by its name."""


def elements(tensors: Mapping[str, tuple[int, ...]]) -> int:
    """Return the total number of elements."""
    return sum(map(prod, tensors.values()))


def linear(name: str, outputs: int, inputs: int, bias: bool = True) -> TensorShapes:
    """Return the shapes of a linear map from `inputs` to `outputs` features."""
    shapes: TensorShapes = {f"{name}.weight": (outputs, inputs)}
    return {**shapes, f"{name}.bias": (outputs,)} if bias else shapes


def norm(name: str, width: int, bias: bool = True) -> TensorShapes:
    """Return the shapes of a layer norm."""
    return {f"{name}.{part}": (width,) for part in ("weight", "bias") if bias or part == "weight"}


def embeddings(name: str, rows: Mapping[str, int], width: int, bias: bool = True) -> TensorShapes:
    """Return the shapes of embeddings, with the given number of `rows` each, and of the norm of their sum."""
    tables: TensorShapes = {f"{name}.{each}.weight": (n, width) for each, n in rows.items()}
    return tables | norm(f"{name}.norm", width, bias)


def bert_layers(name: str, layers: int, hidden: int, inner: int) -> TensorShapes:
    """Return the shapes of the layers of a BERT or DistilBERT."""
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
    """Return the shapes of the masked-token head, without the decoder weight, which is the encoder's embedding."""
    bias: TensorShapes = {"mlm.bias": (vocabulary,)} if decoder_bias else {}
    return bias | linear("mlm.transform", hidden, hidden, biases) | norm("mlm.norm", hidden, biases)
