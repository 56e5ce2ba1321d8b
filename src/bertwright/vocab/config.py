"""The recipe section `[vocab]`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from bertwright.core.config import Section, UserPath, expand_home, known_by_content
from bertwright.core.files import read_bytes, sha256_of
from bertwright.core.json_values import parse_json

VERSION = 5
"""Incremented whenever a code change alters the result of the stage."""

DEFAULT_SIZE = 30_000
DEFAULT_LONGEST_WORD = 1000
MAX_FILE = 256 * 2**20
"""Maximum size of a vocab.txt (bytes); a million entries take 10 to 20 MB."""
MOST_UNKNOWN = 0.05
"""Share of unknown words above which a vocabulary does not fit a text."""
# Entries that every vocabulary has: [PAD], [UNK], [CLS], [SEP] and [MASK].
_SPECIAL = 5
LONGEST_WORD = 100
"""Characters of the longest word that published BERT tokenizers split into pieces; a longer one is [UNK]."""
_OF_TRAINING = ("trainer", "alphabet_coverage", "unused", "sample_bytes", "seed")
"""The settings that only affect training a vocabulary."""


def limit_of(file: Path) -> int:
    """The most characters of a word that the tokenizer of a vocabulary file splits: what tokenizer.json says, the file
    itself or the one beside it; `LONGEST_WORD` if there is none, or none that can be read."""
    try:
        found = expand_home(file).with_name("tokenizer.json") if file.suffix != ".json" else expand_home(file)
        changed = found.stat()
        return _limit_in(found, changed.st_mtime_ns, changed.st_size)
    except (OSError, ValueError):
        return LONGEST_WORD


@cache
def _limit_in(tokenizer: Path, changed: int, size: int) -> int:
    try:
        return int(parse_json(read_bytes(tokenizer, MAX_FILE))["model"]["max_input_chars_per_word"])
    except (ValueError, KeyError, TypeError):
        return LONGEST_WORD  # the library's default; the code that reads the entries reports a damaged file


class WordPieceConfig(Section):
    """The trainer of the `tokenizers` library: byte-pair merges of characters and their ## forms."""

    kind: Literal["wordpiece"] = "wordpiece"
    """Names this trainer."""
    min_frequency: int = Field(2, ge=1)
    """Minimum number of occurrences of a pair of pieces in the sample for it to be merged."""


class SentencePieceConfig(Section):
    """SentencePiece, converted to WordPiece as TurkuNLP's sent2wordpiece does; needs `bertwright[sentencepiece]`."""

    kind: Literal["sentencepiece"] = "sentencepiece"
    """Names this trainer."""
    model: Literal["bpe", "unigram"] = "bpe"
    """SentencePiece's `model_type`: byte-pair merges, or the unigram language model (slower)."""
    input_sentence_size: int = Field(100_000_000, ge=0)
    """Maximum number of sentences to train on; 0: no limit."""
    shuffle: bool = True
    """Whether the sentences are sampled, by complete documents, from the entire corpus (`shuffle_input_sentence`)
    instead of taken from the beginning of the sample. SentencePiece's own sampling is not used: it differs between
    runs."""
    character_coverage: float = Field(0.9999, gt=0, le=1)
    """Share of all character occurrences that SentencePiece's characters must cover; rarer characters are left out."""
    add_characters: bool = True
    """Whether the characters kept by `alphabet_coverage` become entries, with their ## forms, instead of the rarest
    pieces (`size` is unchanged). Otherwise words with a rarer character become [UNK], as in the original."""


TrainerConfig = Annotated[WordPieceConfig | SentencePieceConfig, Field(discriminator="kind")]


class VocabConfig(Section):
    """The vocabulary, and the normalisation of text before it is tokenised."""

    size: int | None = Field(DEFAULT_SIZE, ge=100, le=2**31 - 1)
    """Number of entries of the trained vocabulary, including special and unused ones; omit it if `file` is given. With
    SentencePiece, size - unused - 1 pieces are requested: 32,101 with 100 unused gives sent2wordpiece's 32,000."""

    file: UserPath | None = known_by_content(None)
    """A finished vocab.txt (UTF-8, one entry per line), or a tokenizer.json with a WordPiece vocabulary, to use instead
    of training one. It excludes the settings that control training."""

    extend: UserPath | None = known_by_content(None)
    """A finished vocabulary, as `file` names one, to add entries to, up to `size` in total. Its entries keep their ids,
    so that a network that was trained with it keeps what it knows (`train.init_embeddings`). Entries are learned from
    words that it splits into three or more pieces. Give the text settings it was made with."""

    fill_unused: bool = False
    """Whether added entries first take the places of the entries [unused0], [unused1], ... of `extend`."""

    lower_case: bool = False
    """Whether to lower-case the text; does not affect accents."""

    strip_accents: bool = False
    """Whether to remove combining accents (á becomes a); does not affect case."""

    longest_word: int = Field(DEFAULT_LONGEST_WORD, ge=1, le=10_000)
    """Longest word that is split into pieces (characters); a longer one becomes [UNK]. In Thai, Lao or Tibetan a word
    is everything between two spaces or punctuation marks. tokenizer.json says it to other programs, as
    `max_input_chars_per_word`; they need 0.1 s for a word of 1,000 characters, and a minute for one of 10,000. If
    `file` or `extend` is given, the default is what tokenizer.json says, given or in the same folder; without one, 100,
    as in published BERT models."""

    trainer: TrainerConfig = WordPieceConfig()
    """The algorithm that learns the entries."""

    alphabet_coverage: float = Field(0.9999, gt=0, le=1)
    """Share of all character occurrences that must be covered by characters that are entries, commonest first; a word
    with a rarer character becomes [UNK]. At least one character per 30 entries of `size` is kept, which in most
    alphabets is all of them; if the text has fewer, also those of ASCII and of its scripts that it lacks. Raises an
    error if `size` has no room for the characters; 1 keeps every character. It excludes
    `trainer.add_characters = false`, which takes the characters of the trainer."""

    unused: int = Field(0, ge=0)
    """Number of entries [unused0], [unused1], ... reserved for later use, as in the published BERT vocabularies."""

    sample_bytes: int = Field(150_000_000, ge=1)
    """Amount of text to learn the entries from (bytes); from a larger corpus about this much is sampled, document by
    document. WordPiece needs 1 kB of memory per distinct word in it (1.1 GB for 150 MB of Hungarian), SentencePiece's
    unigram model 20 bytes per byte in addition."""

    seed: int = Field(12345, ge=0)
    """Seed of the selection of documents."""

    @model_validator(mode="before")
    @classmethod
    def _size_or_file(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("file") is None:
            return values
        if values.get("size") is not None:
            raise ValueError(
                "vocab.size and vocab.file exclude each other, because the file already determines the size; leave "
                "size out"
            )
        # Otherwise the default size would be set in addition to the file.
        return {**values, "size": None}

    @model_validator(mode="before")
    @classmethod
    def _longest_word_of_others(cls, values: Any) -> Any:
        given = [values[key] for key in ("file", "extend") if values.get(key)] if isinstance(values, dict) else []
        if given and "longest_word" not in values and isinstance(given[0], str | Path):
            # The network that a finished vocabulary comes from was trained with its limit.
            return {**values, "longest_word": limit_of(Path(given[0]))}
        return values

    def hash_of(self, entries: Sequence[str]) -> str:
        """The hash of a vocabulary of these entries, which artifacts with token ids refer to."""
        # With the text settings, because with other settings the same entries give other ids.
        settings: list[Any] = [self.lower_case, self.strip_accents]
        if self.longest_word != LONGEST_WORD:  # artifacts that are older than this setting keep their hash
            settings.append(self.longest_word)
        return sha256_of(["".join(f"{entry}\n" for entry in entries), *settings])

    @property
    def only_learned(self) -> bool:
        """Whether the only characters that are entries are those that the trainer learned, whatever the coverage."""
        return self.trainer.kind == "sentencepiece" and not self.trainer.add_characters

    @model_validator(mode="after")
    def _coverage_has_an_effect(self) -> VocabConfig:
        if self.only_learned and self.alphabet_coverage != type(self).model_fields["alphabet_coverage"].default:
            raise ValueError(
                f"vocab.alphabet_coverage={self.alphabet_coverage} has no effect with vocab.trainer.add_characters="
                "false: set vocab.trainer.character_coverage instead, or add_characters=true"
            )
        return self

    @model_validator(mode="after")
    def _can_be_extended(self) -> VocabConfig:
        if self.extend is None:
            if self.fill_unused:
                raise ValueError("vocab.fill_unused fills the unused entries of vocab.extend: give that vocabulary")
            return self
        if self.file is not None:
            raise ValueError("vocab.extend adds entries to a vocabulary and vocab.file takes one as it is: give one")
        if self.trainer.kind != "wordpiece" or self.unused:
            wrong = "vocab.unused" if self.unused else "vocab.trainer"
            raise ValueError(
                f"vocab.extend adds entries with the WordPiece trainer, after those of the file: omit {wrong}"
            )
        return self

    @model_validator(mode="after")
    def _is_trained_or_given(self) -> VocabConfig:
        if self.file is not None:
            fields = type(self).model_fields
            # An ignored setting would look as if it had influenced the entries.
            if set_too := [f"vocab.{name}" for name in _OF_TRAINING if getattr(self, name) != fields[name].default]:
                raise ValueError(
                    f"vocab.file is a finished vocabulary, so none is trained: leave out {', '.join(set_too)} (or "
                    "vocab.file)"
                )
        elif self.size is None:
            raise ValueError("vocab.size is missing: give the number of entries to train, or a finished vocab.file")
        elif self.size <= self.unused + _SPECIAL:
            raise ValueError(
                f"vocab.unused={self.unused} leaves no room in vocab.size={self.size}, which includes {_SPECIAL} "
                "special entries: raise vocab.size or lower vocab.unused"
            )
        return self


def sections(config: VocabConfig) -> dict[str, Section]:
    """The settings that determine the vocabulary."""
    return {"vocab": config}
