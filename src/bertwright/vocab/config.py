"""The recipe section `[vocab]`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from bertwright.core.config import Section, UserPath, known_by_content

VERSION = 4
"""Raised when the code of the stage changes its result."""

DEFAULT_SIZE = 30_000
MAX_FILE = 256 * 2**20
"""Most bytes of a vocab.txt that is read; a million entries take 10 to 20 MB."""
# Entries that every vocabulary has: [PAD], [UNK], [CLS], [SEP] and [MASK].
_SPECIAL = 5
_OF_TRAINING = ("trainer", "alphabet_coverage", "unused", "sample_bytes", "seed")
"""The settings that say how a vocabulary is trained."""


class WordPieceConfig(Section):
    """The trainer of the `tokenizers` library: byte-pair merges of characters and their ## forms."""

    kind: Literal["wordpiece"] = "wordpiece"
    """Names this trainer."""
    min_frequency: int = Field(2, ge=1)
    """How often a pair of pieces must occur in the sample before it is joined (occurrences)."""


class SentencePieceConfig(Section):
    """SentencePiece, converted to WordPiece as TurkuNLP's sent2wordpiece does; needs `bertwright[sentencepiece]`."""

    kind: Literal["sentencepiece"] = "sentencepiece"
    """Names this trainer."""
    model: Literal["bpe", "unigram"] = "bpe"
    """SentencePiece's `model_type`: byte-pair merges, or the unigram language model (slower)."""
    input_sentence_size: int = Field(100_000_000, ge=0)
    """Most sentences that are trained on; 0: any number."""
    shuffle: bool = True
    """Whether these come, by whole documents, from everywhere in the corpus (`shuffle_input_sentence`), not from the
    beginning of the sample. SentencePiece's own drawing is not used: it differs from run to run."""
    character_coverage: float = Field(0.9999, gt=0, le=1)
    """Share of the characters' occurrences whose characters SentencePiece learns; rarer ones are left out."""
    add_characters: bool = True
    """Whether the characters that `alphabet_coverage` keeps become entries, with their ## forms, in the place of the
    rarest pieces (`size` stays). Without them words with a rarer character are [UNK], as in the original."""


TrainerConfig = Annotated[WordPieceConfig | SentencePieceConfig, Field(discriminator="kind")]


class VocabConfig(Section):
    """Which vocabulary, and what is done to the text before it is looked up."""

    size: int | None = Field(DEFAULT_SIZE, ge=100, le=2**31 - 1)
    """Entries of the trained vocabulary, special and unused ones included; left out when `file` is given. With
    SentencePiece it asks for size - unused - 1 pieces: 32,101 with 100 unused is the 32,000 of sent2wordpiece."""

    file: UserPath | None = known_by_content(None)
    """A finished vocab.txt (UTF-8, one entry a line) to use instead of training one. Beside it the settings that say
    how one is trained are refused."""

    lower_case: bool = False
    """Lower-case the text. Says nothing about accents."""

    strip_accents: bool = False
    """Remove combining accents (á becomes a). Says nothing about case."""

    trainer: TrainerConfig = WordPieceConfig()
    """What makes the entries."""

    alphabet_coverage: float = Field(0.9999, gt=0, le=1)
    """Share of the characters' occurrences whose characters become entries, commonest first; a word with a rarer one
    becomes [UNK]. One character for every 30 entries of `size` is kept in any case: in most alphabets that is all of
    them. Refused where `size` has no room for them; 1 keeps every character."""

    unused: int = Field(0, ge=0)
    """Entries [unused0], [unused1], ... kept free for later use, as in the published BERT vocabularies."""

    sample_bytes: int = Field(150_000_000, ge=1)
    """Text that the entries are learnt from, in bytes: of a larger corpus about this much is drawn, document by
    document. WordPiece takes 1 kB of memory per distinct word in it (1.1 GB for 150 MB of Hungarian), SentencePiece's
    unigram model also 20 bytes per byte."""

    seed: int = Field(12345, ge=0)
    """Decides which documents are drawn."""

    @model_validator(mode="before")
    @classmethod
    def _size_or_file(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("file") is None:
            return values
        if values.get("size") is not None:
            raise ValueError("vocab.size and vocab.file exclude each other: a given file has its size; leave size out")
        # Else the default size would stand beside the file.
        return {**values, "size": None}

    @model_validator(mode="after")
    def _is_trained_or_given(self) -> VocabConfig:
        if self.file is not None:
            fields = type(self).model_fields
            # A setting that nothing reads would look as if it had shaped the entries.
            if set_too := [f"vocab.{name}" for name in _OF_TRAINING if getattr(self, name) != fields[name].default]:
                raise ValueError(
                    f"vocab.file is finished, nothing is trained: leave out {', '.join(set_too)} (or vocab.file)"
                )
        elif self.size is None:
            raise ValueError("vocab.size is missing: give the number of entries to train, or a finished vocab.file")
        elif self.size <= self.unused + _SPECIAL:
            raise ValueError(
                f"vocab.unused={self.unused} leaves no room in vocab.size={self.size}, where {_SPECIAL} entries are "
                "special: raise vocab.size or lower vocab.unused"
            )
        return self


def sections(config: VocabConfig) -> dict[str, Section]:
    """The settings that the vocabulary is a function of."""
    return {"vocab": config}
