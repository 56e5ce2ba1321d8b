"""The knobs of the corpus stage."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bertwright.core.config import Section, how


class FilterConfig(Section):
    """The document filter of the TurkuNLP wiki-bert-pipeline; a document is dropped at the first test it fails."""

    enabled: bool = True
    """Whether documents are filtered at all."""
    min_mean_words: float = Field(default=4.0, ge=0)
    """Fewest words per sentence, on average (words as the alphabet defines them)."""
    min_sentences: int = Field(default=3, ge=0)
    """Fewest sentences in a document."""
    max_sentences: int = Field(default=1000, ge=1)
    """Most sentences in a document."""
    min_tokens: int = Field(default=20, ge=0)
    """Fewest space-separated tokens in a document."""
    max_tokens: int = Field(default=10_000, ge=1)
    """Most space-separated tokens in a document."""
    max_wordless: float = Field(default=0.2, ge=0, le=1)
    """Largest share of sentences without a single word."""
    max_punctuation: float = Field(default=0.075, ge=0, le=1)
    """Largest share of ASCII punctuation marks among the characters."""
    max_upper: float = Field(default=0.1, ge=0, le=1)
    """Largest share of upper-case letters among the characters."""
    max_digits: float = Field(default=0.075, ge=0, le=1)
    """Largest share of digits among the characters."""
    max_foreign: float = Field(default=0.02, ge=0, le=1)
    """Largest share of letters outside the alphabet among the characters."""
    min_words: int = Field(default=30, ge=0)
    """Fewest words in a document."""
    alphabet: str = ""
    """Lower-case letters of words; empty: those of the corpus language and of `languages`, or of their script."""
    languages: tuple[str, ...] = ()
    """Languages a document may be in (wiki codes); empty: the corpus language. Not tested if CLD2 does not know one."""


class CorpusConfig(Section):
    """From a Wikipedia dump or plain text to shards of sentences."""

    source: str | tuple[str, ...] = Field(min_length=1)
    """Path of a dump or text, or several in order; "sample" and "sample-small" are built in. A file is known by its
    size and a sample of its content (all of it up to 4 MiB), not by its name; its SHA-256 is noted in the manifest."""
    language: str = Field(pattern=r"^[a-z]{2,}[a-z-]*$")
    """Wiki code of the language, e.g. "hu", "uk", "ltg"."""
    lines: Literal["paragraphs", "sentences"] = "paragraphs"
    """What a line of a plain-text source is: a paragraph to be split, or one sentence."""
    licence: str = ""
    """Licence of the texts, noted beside every document; empty: "CC BY-SA" for Wikimedia wikis, else "unknown"."""
    keep_disambiguation: bool = False
    """Whether disambiguation pages are kept."""
    filter: FilterConfig = FilterConfig()
    """Which documents are good enough."""
    deduplicate: bool = True
    """Whether of documents with the same text only the first is kept."""
    shard_bytes: int = Field(default=16 * 2**20, ge=1024, le=128 * 2**20)
    """Uncompressed text per shard, in bytes."""
    workers: int = how(0, ge=0)
    """Processes that work at the same time; 0: one per processor."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources as a tuple, also where the recipe names only one."""
        return (self.source,) if isinstance(self.source, str) else self.source
