"""The facts about the vocabulary that loaders need: `vocabulary.json` of the examples artifact."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_typed

if TYPE_CHECKING:  # loading batches must not require a tokenizer (decision 0002)
    from bertwright.vocab.tokenizer import Tokenizer

Id = Annotated[int, Field(ge=0, lt=2**31)]


@dataclass(frozen=True)
class Vocabulary:
    """The facts about the vocabulary that loaders need (`vocabulary.json` in the examples artifact)."""

    hash: str
    size: Id
    pad: Id
    unk: Id
    cls: Id
    sep: Id
    mask: Id
    unused: tuple[Id, ...]
    continues: tuple[Id, ...]
    """The ids of pieces that continue a word (##)."""

    @classmethod
    def open(cls, examples: Artifact, vocab: Artifact | None = None) -> Vocabulary:
        """Read `vocabulary.json` of an examples artifact.

        Raises `ArtifactError` if it is invalid, or if the artifact was made with another vocabulary than `vocab`.
        """
        path = examples.file("vocabulary.json")
        vocabulary = read_typed(path, TypeAdapter(cls))
        # An id beyond the embedding would fail on the device, far from its cause.
        special = vocabulary.pad, vocabulary.unk, vocabulary.cls, vocabulary.sep, vocabulary.mask
        if max(*special, *vocabulary.unused, *vocabulary.continues) >= vocabulary.size:
            raise ArtifactError(
                f"{path} contains ids beyond its {vocabulary.size:,} entries. Run the stage examples again."
            )
        if vocab is not None and vocab.counts["vocabulary"] != vocabulary.hash:
            raise ArtifactError(
                f"the tokens in {examples.path} were made with another vocabulary than {vocab.path} "
                f"({vocabulary.hash[:12]} instead of {vocab.counts['vocabulary'][:12]}). Run the stage examples again."
            )
        return vocabulary

    @classmethod
    def of(cls, tokenizer: Tokenizer, hash: str = "") -> Vocabulary:
        """The facts about the vocabulary of a tokenizer; `hash` identifies it in artifacts."""
        # Reading examples needs nothing of the room of vocabularies.
        from bertwright.vocab.entries import CLS, MASK, PAD, SEP, UNK

        entries = tokenizer.vocabulary
        pad, unk, cls_id, sep, mask = (tokenizer.ids(entry) for entry in (PAD, UNK, CLS, SEP, MASK))
        unused = tuple(i for i, entry in enumerate(entries) if entry.startswith("[unused"))
        continues = tuple(np.flatnonzero(tokenizer.continuation).tolist())
        return cls(hash, len(entries), pad, unk, cls_id, sep, mask, unused, continues)

    @property
    def special(self) -> tuple[int, int, int, int]:
        """The ids of [PAD], [CLS], [SEP] and [MASK], which stand for no text and are never predicted ([UNK] stands for
        a word)."""
        return self.pad, self.cls, self.sep, self.mask

    @cached_property
    def continuation(self) -> NDArray[np.bool_]:
        """[V] whether each entry continues a word."""
        flags = np.zeros(self.size, np.bool_)
        flags[list(self.continues)] = True
        return flags

    @cached_property
    def words(self) -> NDArray[np.int64]:
        """[W] the ids that are neither special nor `[unusedN]`, in increasing order."""
        reserved = [self.pad, self.unk, self.cls, self.sep, self.mask, *self.unused]
        return np.setdiff1d(np.arange(self.size), reserved)
