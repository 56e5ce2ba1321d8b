"""The base of the recipe sections `[model]` of all families. Does not import torch, so checking stays fast."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from bertwright.core.config import Section, UserPath, known_by_content
from bertwright.core.errors import RecipeError
from bertwright.model.family import Head, Labels, Network, NetworkSection, validated


class ModelSection(Section):
    """The base of the recipe sections `[model]` of all families: a named size or a configuration file, and what the
    recipe changes of it."""

    takes_pairs: ClassVar[bool] = False
    """Whether pairs are supported: it distinguishes segments and can have a next-sentence head."""
    sizes: ClassVar[Mapping[Any, tuple[int, int, int, int]]]
    """The named sizes: hidden size, layers, heads, inner size."""
    size_keys: ClassVar[tuple[str, ...]] = (
        "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    )  # fmt: skip
    """The fields of the network that these four are."""
    size_values: ClassVar[Mapping[str, Any]]
    """Fields of the network that have another default for named sizes."""
    dropout_keys: ClassVar[tuple[str, ...]] = ("hidden_dropout_prob",)
    """The fields of the network that `dropout` sets."""
    attention_dropout_key: ClassVar[str] = "attention_dropout"
    """The field of the network that `attention_dropout` sets."""

    kind: str
    """The family of networks."""
    size: str | None = None
    """Named size; give either this or `config`."""
    config: UserPath | None = known_by_content(None)
    """Path of a configuration file; give either this or `size`."""
    ignore_vocab_size: bool = False
    """Whether `vocab_size` of the configuration file is ignored, for a network with another vocabulary
    (`train.init_embeddings`): the embedding then has a row for each entry of the run's vocabulary."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout probability; if unset, the file's value, or the family's for a named size."""
    attention_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout probability of attention weights; if unset, the file's value, 0 for a named size (0.1 in the paper)."""
    max_positions: int | None = Field(None, gt=0)
    """Maximum sequence length, in tokens; if unset, the file's value, or 512 for a named size."""
    initializer_range: float | None = Field(None, gt=0)
    """Standard deviation of the initial weights; if unset, the file's value, or 0.02 for a named size."""
    pad_vocab_to_multiple_of: int = Field(1, gt=0)
    """Round the number of embedding rows up to a multiple of this (8 or 64 is fast on GPUs); 1 adds no rows."""

    @model_validator(mode="after")
    def _size_or_config(self) -> Self:
        if (self.size is None) == (self.config is None):
            raise ValueError(
                f"give exactly one of size ({', '.join(self.sizes)}) and config (a path); "
                f"got size={self.size!r}, config={self.config and str(self.config)!r}"
            )
        if self.ignore_vocab_size and self.config is None:
            raise ValueError("ignore_vocab_size is about the file that config names; leave it out")
        return self

    def network(
        self, family: type[Network], vocab_size: int, next_sentence: bool, labels: Labels, head: Head
    ) -> Network:
        """Return the network configuration for a vocabulary of `vocab_size` entries, with a next-sentence head if
        `next_sentence` is set, or with a classifier for `labels` that `head` describes.

        Raises `RecipeError` if a next-sentence head is requested of a family without one, or if a configuration file
        has fewer embedding rows than the vocabulary.
        """
        if next_sentence and not self.takes_pairs:
            raise RecipeError(
                f"model.kind={self.kind} has no next-sentence head, but examples of pairs (examples.plan) need one; "
                "make the examples with examples.plan=full-sentences or doc-sentences, or set model.kind=bert"
            )
        own = self._of_size() if self.config is None else self._of_file(family, self.config)
        rows = vocab_size if self.ignore_vocab_size else own.get("vocab_size", vocab_size)
        own |= {"vocab_size": self._rows(rows, vocab_size), "labels": labels, "head": head}
        changes = {
            **dict.fromkeys(self.dropout_keys, self.dropout),
            self.attention_dropout_key: self.attention_dropout,
            "max_position_embeddings": self.max_positions,
            "initializer_range": self.initializer_range,
            "next_sentence": next_sentence if self.takes_pairs else None,
        }
        own |= {key: value for key, value in changes.items() if value is not None}
        return validated(family, own, self.config or f"model.size {self.size}")

    def _of_file(self, family: type[NetworkSection], path: Path) -> dict[str, Any]:
        # Imported lazily: most recipes do not read another program's configuration file.
        from bertwright.model.config_file import read_values

        return read_values(path, family)

    def _of_size(self) -> dict[str, Any]:
        return {**dict(zip(self.size_keys, self.sizes[self.size], strict=True)), **self.size_values}

    def _rows(self, rows: int, vocab_size: int) -> int:
        """Rows of the token embedding, rounded up, of which a configuration file may have more than the vocabulary
        has entries (NVIDIA pads 30,522 to 30,528); with fewer, the last entries would index beyond the embedding."""
        if rows < vocab_size:
            raise RecipeError(
                f"model.config {self.config} has vocab_size {rows}, but the vocabulary has {vocab_size} entries; "
                f"set model.ignore_vocab_size=true if the network is for another vocabulary, or train a smaller one "
                "(vocab.size)"
            )
        # Rows beyond the vocabulary belong to no token; `export` removes them again.
        multiple = self.pad_vocab_to_multiple_of
        return -(-rows // multiple) * multiple
