"""The base of the configurations of all families of networks. Does not import torch, so checking stays fast.

Beside it are the rules by which initial weights are drawn (`initial` draws them); what a layer keeps for its backward
pass, from which memory is forecast; and the shape of every parameter by name, in the order of `named_parameters`, which
memory estimates, partitions and name patterns use before the network exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar

from pydantic import ValidationError

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError

Network = TypeVar("Network", bound="NetworkSection")
Allowed = Mapping[str, tuple[Any, ...] | None]
"""For each key, the values that do not change the network; None: any value, because the key concerns files, classifiers
or output, not the network."""
Labels = tuple[str, ...]
"""Names of what a classifier predicts; none for a network with pre-training heads."""
Head = Literal["sequence", "several", "token", "span", "choice", "vector"]
"""What a classifier predicts: a class, or a number (a single label), of a sequence; any number of labels of a sequence;
a class of a token; where an answer begins and ends, with logits for every token; or a logit for each of several
sequences that compete. A network with the head `vector`, which has no tensors, gives a vector of a sequence."""
ANSWERS: Mapping[Head, Labels] = MappingProxyType({"span": ("start", "end"), "choice": ("choice",)})
"""The names of what classifiers predict if it is no class of one's own."""


class Described(Protocol):
    """What a network's configuration says of it, under the names that all families use."""

    @property
    def hidden_size(self) -> int:
        """Width of the hidden state."""

    @property
    def num_hidden_layers(self) -> int:
        """Number of encoder layers."""

    @property
    def intermediate_size(self) -> int:
        """Width of the feed-forward layer."""

    @property
    def initializer_range(self) -> float:
        """Standard deviation of the initial weights."""

    @property
    def next_sentence(self) -> bool:
        """Whether there is a next-sentence head."""

    @property
    def labels(self) -> Labels:
        """The classes of a classifier."""

    @property
    def head(self) -> Head:
        """What a classifier predicts."""

    @property
    def reads_tokens(self) -> bool:
        """Whether a classifier reads the states of tokens."""

    @property
    def gives_vectors(self) -> bool:
        """Whether there is no head with tensors."""

    @property
    def tensors(self) -> TensorShapes:
        """The shape of every parameter of the network and its heads, by name."""


class NetworkSection(Section):
    """The base of the network configurations of all families; what it says holds for BERT's layers."""

    family: ClassVar[str]
    """The prefix of the encoder's tensor names."""
    title: ClassVar[str]
    """The name of the family in messages."""
    head_biases: ClassVar[bool] = True
    """Whether the transform and the norm of the masked-token head have biases."""
    shares_transform: ClassVar[bool] = False
    """Whether a classifier has the transform of the masked-token head, and starts from its weights."""
    fused: ClassVar[Mapping[str, int]] = MappingProxyType({})
    """Number of matrices that a tensor of a layer stacks along its rows, by the end of the tensor's name; tensors not
    listed are one matrix."""
    may_differ: ClassVar[frozenset[str]]
    """Fields in which it may differ from the network whose weights it starts from; all others change its function."""
    same_network: ClassVar[Allowed]
    """Keys of other programs' configuration files, in addition to those of every family, with the values that mean a
    network of this one."""

    @classmethod
    def in_our_words(cls, path: Path, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the values of another program's configuration file, with keys of other versions replaced."""
        return values

    head: Head = "sequence"
    """What a classifier predicts."""

    @property
    def reads_tokens(self: Described) -> bool:
        """Whether there is a classifier that reads the states of tokens, and not that of the first one."""
        return bool(self.labels) and self.head in ("token", "span")

    @property
    def gives_vectors(self: Described) -> bool:
        """Whether it has no head with tensors: its output is the vector of a sequence."""
        return self.head == "vector"

    @property
    def predicts_tokens(self: Described) -> bool:
        """Whether it has the head for masked tokens, which a classifier lacks, and a network for vectors."""
        return not self.labels and not self.gives_vectors

    @property
    def sequence_logits(self: Described) -> int:
        """Number of logits for each sequence, of the classifier or the next-sentence head; 0: it has neither."""
        return 2 if self.next_sentence else 0 if self.reads_tokens else len(self.labels)

    @property
    def initializer(self: Described) -> Normal | TruncatedNormal:
        """The rule by which initial weights are drawn."""
        return Normal(self.initializer_range)

    @property
    def layer_products(self: Described) -> tuple[int, int]:
        """Number of weights in a layer that every token is multiplied with: before attention, and after it."""
        h, f = self.hidden_size, self.intermediate_size
        return 3 * h * h, h * h + 2 * h * f

    @property
    def windows(self: Described) -> tuple[int | None, ...]:
        """The attention window of each layer, in tokens; None: global attention."""
        return (None,) * self.num_hidden_layers

    @property
    def parameters(self: Described) -> int:
        """Number of parameters of the network and its heads; the tied decoder is counted once."""
        return elements(self.tensors)


def check_heads(hidden: tuple[str, int], heads: tuple[str, int]) -> None:
    """Raise `ValueError` unless the number of heads divides the width of the hidden state. Each argument is a pair of
    key and value."""
    (hidden_key, width), (heads_key, count) = hidden, heads
    if width % count:
        raise ValueError(
            f"{hidden_key} {width} is not a multiple of {heads_key} {count}; choose a number of heads that divides it"
        )


def to_json(network: Section) -> dict[str, Any]:
    """Return the configuration of a network for files; omits `labels` for a network with pre-training heads, and `head`
    unless it predicts something else than classes of sequences."""
    values = network.model_dump()
    return {
        key: value
        for key, value in values.items()
        if value not in {"labels": ((),), "head": ("sequence",)}.get(key, ())
    }


def validated(network: type[Network], values: Mapping[str, Any], source: Path | str) -> Network:
    """Return the network that `values` describe. Invalid values raise `RecipeError`, which names `source` and keys."""
    try:
        return network.model_validate(values)
    except ValidationError as error:
        faults = "; ".join(": ".join([*map(str, fault["loc"]), fault["msg"]]) for fault in error.errors())
        raise RecipeError(f"{source} does not describe a {network.title}: {faults}") from error


class Activations(NamedTuple):
    """Numbers per token of one layer. Those of attention depend on the kernel and are not among them."""

    feed_forward: float
    """Kept by the feed-forward layer between its two linear maps."""
    others: float
    """Kept by everything else."""
    masks: float
    """Elements of the dropout masks, where the network has dropout; a fused kernel keeps one byte of each."""


@dataclass(frozen=True)
class Normal:
    """Matrices are drawn from N(0, std²), biases start at 0, layer norms at 1 and 0."""

    std: float


@dataclass(frozen=True)
class TruncatedNormal:
    """Like `Normal`, but truncated, and smaller where a product is added to the residual."""

    std: float
    cutoff: float
    """Number of standard deviations at which the distribution is truncated."""


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
