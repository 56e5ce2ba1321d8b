"""The recipe section `[vocab]`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from bertwright.core.config import Section

DEFAULT_SIZE = 30_000


class VocabConfig(Section):
    """Which vocabulary, and what is done to the text before it is looked up."""

    size: int | None = Field(DEFAULT_SIZE, ge=100, le=2**31 - 1)
    """Entries of the trained vocabulary, special and unused ones included; left out when `file` is given."""

    file: Path | None = None
    """A finished vocab.txt (UTF-8, one entry a line) to use instead of training one."""

    lower_case: bool = False
    """Lower-case the text. Says nothing about accents."""

    strip_accents: bool = False
    """Remove combining accents (á becomes a). Says nothing about case."""

    min_frequency: int = Field(2, ge=1)
    """How often a pair of pieces must occur in the corpus before it is joined (occurrences)."""

    alphabet: int = Field(1000, ge=1)
    """Characters kept as entries, commonest first, at most a quarter of `size`; rarer ones become [UNK]."""

    unused: int = Field(0, ge=0)
    """Entries [unused0], [unused1], ... kept free for later use, as in the published BERT vocabularies."""

    @model_validator(mode="before")
    @classmethod
    def _size_or_file(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("file") is None:
            return values
        if values.get("size") is not None:
            raise ValueError("vocab.size and vocab.file exclude each other: a given file has its size; leave size out")
        return {**values, "size": None}

    @model_validator(mode="after")
    def _size_is_known(self) -> VocabConfig:
        if self.size is None and self.file is None:
            raise ValueError("vocab.size is missing: give the number of entries to train, or a finished vocab.file")
        return self
