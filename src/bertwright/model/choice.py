"""What the recipe sections of all families share: choice of a size or a file, embedding rows, and validation.

Does not import torch, so that checking a recipe stays fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError

Network = TypeVar("Network", bound=Section)
Labels = tuple[str, ...]
"""Names of the classes of a sequence; a single name for regression, none for a network with pre-training heads."""


class Headed(Protocol):
    """The heads of a network's configuration."""

    @property
    def next_sentence(self) -> bool:
        """Whether there is a next-sentence head."""

    @property
    def labels(self) -> Labels:
        """The classes of a classifier."""


class HeadSizes:
    """What a network predicts, from its configuration; a base of those of all families."""

    @property
    def predicts_tokens(self: Headed) -> bool:
        """Whether it has the head for masked tokens, which a classifier lacks."""
        return not self.labels

    @property
    def sequence_logits(self: Headed) -> int:
        """Number of logits for each sequence, of the classifier or the next-sentence head; 0: it has neither."""
        return 2 if self.next_sentence else len(self.labels)


def check_size_or_config(size: str | None, config: Path | None, sizes: Iterable[str]) -> None:
    """Raise `ValueError` unless exactly one of a named size and a configuration file is given."""
    if (size is None) == (config is None):
        raise ValueError(
            f"give exactly one of size ({', '.join(sizes)}) and config (a path); "
            f"got size={size!r}, config={config and str(config)!r}"
        )


def check_heads(hidden: tuple[str, int], heads: tuple[str, int]) -> None:
    """Raise `ValueError` unless the number of heads divides the width of the hidden state. Each argument is a pair of
    key and value."""
    (hidden_key, width), (heads_key, count) = hidden, heads
    if width % count:
        raise ValueError(
            f"{hidden_key} {width} is not a multiple of {heads_key} {count}; choose a number of heads that divides it"
        )


def embedding_rows(own: Mapping[str, Any], vocab_size: int, multiple: int, config: Path | None) -> int:
    """Return the rows of the token embedding for `vocab_size` entries, rounded up to a `multiple`; `own` holds the
    values of a configuration file or named size.

    A configuration file may have more rows than the vocabulary (NVIDIA pads 30,522 to 30,528). Fewer rows raise
    `RecipeError`, because the last entries would index beyond the embedding.
    """
    rows: int = own.get("vocab_size", vocab_size)
    if rows < vocab_size:
        raise RecipeError(
            f"model.config {config} has vocab_size {rows}, but the vocabulary has {vocab_size} entries; "
            f"set vocab_size to at least {vocab_size} in that file, or train a smaller vocabulary (vocab.size)"
        )
    # Rows beyond the vocabulary belong to no token; `export` removes them again.
    return -(-rows // multiple) * multiple


def chosen(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that the recipe sets; they override those of the file or the named size."""
    return {key: value for key, value in values.items() if value is not None}


def refuse_pairs(kind: str, next_sentence: bool) -> None:
    """Raise `RecipeError` if a next-sentence head is requested for a family without segments and pooler."""
    if next_sentence:
        raise RecipeError(
            f"model.kind={kind} has no next-sentence head, but examples of pairs (examples.plan) need one; make the "
            "examples with examples.plan=full-sentences or doc-sentences, or set model.kind=bert"
        )


def shown(network: Section) -> dict[str, Any]:
    """Return the configuration of a network for files; omits `labels` for a network with pre-training heads."""
    values = network.model_dump()
    return {key: value for key, value in values.items() if key != "labels" or value}


def validated(network: type[Network], values: Mapping[str, Any], source: Path | str, title: str) -> Network:
    """Return the network that `values` describe. Invalid values raise `RecipeError`, which names `source` and keys."""
    try:
        return network.model_validate(values)
    except ValidationError as error:
        faults = "; ".join(": ".join([*map(str, fault["loc"]), fault["msg"]]) for fault in error.errors())
        raise RecipeError(f"{source} does not describe a {title}: {faults}") from error
