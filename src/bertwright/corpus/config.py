"""The knobs of the corpus stage."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from bertwright.core.config import Section, how


class SourceConfig(Section):
    """One source of text. What it is made of is known by its content, so its path may change."""

    path: str = how(..., min_length=1)
    """A file, a folder, a pattern such as "novels/*.txt", or an address (s3://, az://, https://); "sample" and
    "sample-small" are built in. Credentials come from the environment. Files are taken in the order of their names."""
    name: str = ""
    """Its name beside every document; empty: the wiki's own name ("huwiki"), else its format."""
    weight: float = Field(default=1.0, gt=0, le=100)
    """How often each of its documents stands in the corpus, on average (times)."""
    format: Literal["auto", "dump", "text", "jsonl", "parquet", "wikiextractor", "datasets"] = "auto"
    """What its files are; "auto": told by their content. "datasets" is a folder that Hugging Face `datasets` saved."""
    lines: Literal["paragraphs", "sentences", "articles", "wrapped"] = "paragraphs"
    """What a line of plain text is: a paragraph, or a sentence, of documents that blank lines part; a whole document;
    or, "wrapped", a part of a paragraph, which a blank line ends, of a file that is one document."""
    text: str = "text"
    """The key (JSONL) or column (Parquet, datasets) that holds the text."""
    licence: str = ""
    """Licence of its texts, noted beside every document; empty: "CC BY-SA" for Wikimedia wikis, else "unknown"."""


class SplitConfig(Section):
    """How paragraphs are split into sentences."""

    command: tuple[str, ...] = ()
    """A program and its arguments that splits them, e.g. ["quntoken", "-f", "spl"]; empty: the built-in rules. It reads
    paragraphs on its standard input and writes one sentence a line; `corpus.program` says more. It is known by this
    command alone: a new version of it under the same command is not noticed."""
    timeout: float = how(600.0, gt=0)
    """Time in which the program must have split a million characters, in seconds."""


class FilterConfig(Section):
    """The document filter of the TurkuNLP wiki-bert-pipeline; a document is dropped at the first test it fails.

    The rules about paragraphs (`boilerplate` and after) come first and are off unless asked for.
    """

    enabled: bool = True
    """Whether documents are tested at all."""
    keep_dropped: bool = True
    """Whether dropped documents are set aside in the corpus's folder `dropped`, each with the reason."""
    min_mean_words: float = Field(default=4.0, ge=0)
    """Fewest words per sentence, on average (words as the alphabet defines them; in languages written without spaces
    two letters are a word)."""
    min_sentences: int = Field(default=3, ge=0)
    """Fewest sentences in a document."""
    max_sentences: int = Field(default=1000, ge=1)
    """Most sentences in a document."""
    min_tokens: int = Field(default=20, ge=0)
    """Fewest space-separated tokens in a document (words in languages written without spaces)."""
    max_tokens: int = Field(default=10_000, ge=1)
    """Most space-separated tokens in a document (words in languages written without spaces)."""
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
    """Languages a document may be in (wiki codes); empty: the corpus language."""
    identify: bool = True
    """Whether documents in another language are dropped, where CLD2 or py3langid know all of the languages."""
    boilerplate: bool = False
    """Whether paragraphs with a mark of English web boilerplate are removed: "javascript", "lorem ipsum", a curly
    bracket, or a phrase about cookies, terms of use or privacy policies."""
    patterns: tuple[str, ...] = ()
    """Regular expressions (letter case aside); a paragraph in which one is found is removed."""
    emails: Literal["keep", "mask", "drop"] = "keep"
    """What becomes of e-mail addresses: kept, masked as name@example.com, or their paragraph is removed."""
    phones: Literal["keep", "mask", "drop"] = "keep"
    """What becomes of telephone numbers: kept, masked as 000 000 000, or their paragraph is removed."""

    @field_validator("patterns")
    @classmethod
    def _compiles(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        return patterns


class DeduplicateConfig(Section):
    """What is left out because the corpus has it already; of what is the same, the first in the sources stays."""

    documents: bool = True
    """Whether documents with the text of an earlier one are left out."""
    near_documents: bool = True
    """Whether documents like an earlier one are left out, told by MinHash over runs of 5 words (10 characters in
    languages written without spaces); case, marks and numbers make no difference."""
    similarity: float = Field(default=0.65, ge=0.5, le=1)
    """Share of their runs of words that two documents have in common (Jaccard, estimated) from which they are alike; a
    copy with every fortieth word changed has 0.78. Below 0.6 some pairs are never compared."""
    paragraphs: bool = True
    """Whether paragraphs with the text of an earlier one, letter case aside, are left out of their documents."""
    min_words: int = Field(default=20, ge=1)
    """Fewest words of a paragraph that is left out: short ones, such as list items, repeat rightly (words; two
    characters count for one in languages written without spaces)."""

    @model_validator(mode="after")
    def _measures_are_used(self) -> Self:
        for measure, rule in (("similarity", "near_documents"), ("min_words", "paragraphs")):
            if not getattr(self, rule) and getattr(self, measure) != type(self).model_fields[measure].default:
                raise ValueError(f"deduplicate.{measure} measures nothing where {rule} is off: leave it out")
        return self


class WikitextConfig(Section):
    """What is made of the markup of a wiki's pages."""

    maths: Literal["drop", "tex"] = "drop"
    """What formulas in <math>, <chem> and <ce> become: nothing, or their TeX on one line."""
    templates: Path | None = None
    """A TOML file of patterns of templates, in the form of the built-in `templates.toml`; its lines win over those."""
    expand_templates: bool = False
    """Whether templates that the dump itself defines as one line of plain text are written out; reads a dump twice."""


class CorpusConfig(Section):
    """From Wikipedia dumps and other texts to shards of sentences."""

    source: tuple[SourceConfig, ...] = Field(min_length=1)
    """A path, or a table with a path and more, or a list of these, in order. A file is known by its size and a sample
    of its content (all of it up to 4 MiB), not by its name; its SHA-256 is noted in the manifest."""
    language: str = Field(pattern=r"^[a-z]{2,}[a-z-]*$")
    """Wiki code of the language, e.g. "hu", "uk", "ltg"."""
    keep_disambiguation: bool = False
    """Whether disambiguation pages are kept."""
    wikitext: WikitextConfig = WikitextConfig()
    """What is made of the markup of a wiki's pages."""
    split: SplitConfig = SplitConfig()
    """How paragraphs are split into sentences."""
    filter: FilterConfig = FilterConfig()
    """Which documents are good enough."""
    deduplicate: DeduplicateConfig = DeduplicateConfig()
    """What is left out because the corpus has it already."""
    shard_bytes: int = Field(default=4 * 2**20, ge=1024, le=128 * 2**20)
    """Uncompressed text per shard, about, in bytes; all shards have about equally many sentences."""
    shards: int | None = Field(default=None, ge=1, le=100_000)
    """Number of shards, whatever their size in bytes; none: as many as `shard_bytes` asks for."""
    seed: int = Field(default=12345, ge=0)
    """Seed of what is drawn: which documents of a source whose weight is no whole number stand once more."""
    contamination: tuple[Path, ...] = ()
    """Evaluation texts whose share in the finished corpus is counted: one sentence or example a line, or JSON lines
    (`.jsonl`). Nothing is left out for them."""
    workers: int = how(0, ge=0)
    """Processes that work at the same time; 0: one per processor."""
    downloads: Path = how(Path("downloads"))
    """Folder of the local copies of sources that lie on other machines; a file in it is never fetched again."""

    @model_validator(mode="after")
    def _something_is_split(self) -> Self:
        if self.split.command and all(source.lines == "sentences" for source in self.source):
            raise ValueError('split.command splits nothing where every source has lines = "sentences": leave it out')
        return self

    @field_validator("source", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        """A path alone stands for a source with nothing else said of it."""
        values = value if isinstance(value, list | tuple) else [value]
        return [{"path": each} if isinstance(each, str) else each for each in values]
