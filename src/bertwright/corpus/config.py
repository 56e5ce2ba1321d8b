"""The knobs of the corpus stage."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from bertwright.core.config import Section, UserPath, known_by_content, runtime_only
from bertwright.corpus.filter_config import FilterConfig
from bertwright.corpus.wikis import wiki_code

VERSION = 6
"""Raised when the code of the stage changes its result."""


SourceKind = Literal["dump", "text", "jsonl", "parquet", "wikiextractor", "datasets"]
"""Formats of sources; `corpus.sources.known` has them all, and loads what reads them."""


class SourceConfig(Section):
    """One source of text. What it is made of is known by its content, so its path may change."""

    path: Annotated[str, AfterValidator(os.path.expanduser)] = runtime_only(..., min_length=1)
    """A file, a folder, a pattern such as "novels/*.txt", or an address (s3://, az://, https://); "sample" and
    "sample-small" are built in. Credentials come from the environment. Files are taken in the order of their names."""
    name: str = ""
    """Its name beside every document; empty: the wiki's own name ("huwiki"), else its format."""
    weight: float = Field(default=1.0, gt=0, le=100)
    """How often each of its documents stands in the corpus, on average (times)."""
    format: Literal["auto", SourceKind] = "auto"
    """The format of its files; "auto": detected from their content. "datasets" is a folder that Hugging Face `datasets`
    saved."""
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
    timeout: float = runtime_only(600.0, gt=0)
    """Time in which the program must have split a million characters, in seconds."""


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
    templates: UserPath | None = known_by_content(None)
    """A TOML file of patterns of templates, in the form of the built-in `templates.toml`; its lines win over those."""
    expand_templates: bool = True
    """Whether templates that the dump itself defines as one line of plain text are written out; they are looked for
    before the articles are read."""


class CorpusConfig(Section):
    """From Wikipedia dumps and other texts to shards of sentences."""

    source: tuple[SourceConfig, ...] = Field(min_length=1)
    """A path, or a table with a path and more, or a list of these, in order. A file is known by its size and a sample
    of its content (all of it up to 4 MiB), not by its name; its SHA-256 is noted in the manifest."""
    language: str
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
    contamination: tuple[UserPath, ...] = known_by_content(())
    """Evaluation texts whose share in the finished corpus is counted: one sentence or example a line, or JSON lines
    (`.jsonl`). Nothing is left out for them."""
    workers: int = runtime_only(0, ge=0)
    """Processes that work at the same time; 0: one per processor."""
    cache_dir: UserPath = runtime_only(Path("downloads"))
    """Folder of the local copies of sources that lie on other machines; a file in it is never fetched again."""

    @model_validator(mode="after")
    def _something_is_split(self) -> Self:
        if self.split.command and all(source.lines == "sentences" for source in self.source):
            raise ValueError('split.command splits nothing where every source has lines = "sentences": leave it out')
        return self

    @field_validator("language")
    @classmethod
    def _is_a_code(cls, language: str) -> str:
        return wiki_code(language)

    @field_validator("source", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        """A path alone stands for a source with nothing else said of it."""
        values = value if isinstance(value, list | tuple) else [value]
        return [{"path": source} if isinstance(source, str) else source for source in values]


def sections(config: CorpusConfig) -> dict[str, Section]:
    """The settings that the corpus is a function of."""
    return {"corpus": config}
