"""The settings of the corpus stage."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from bertwright.core.config import Section, ShownText, UserPath, known_by_content, runtime_only
from bertwright.corpus.filter_config import FilterConfig
from bertwright.corpus.wikis import wiki_code

VERSION = 10
"""Incremented when a change to the stage's code changes its output."""


SourceKind = Literal["dump", "text", "jsonl", "parquet", "wikiextractor", "datasets"]
"""Names of the source formats; `corpus.sources.known` imports the code that reads each of them."""


class SourceConfig(Section):
    """One source of text. It is identified by its content, so its path may change."""

    path: Annotated[str, AfterValidator(os.path.expanduser)] = runtime_only(..., min_length=1)
    """A file, a folder, a glob pattern such as "novels/*.txt", or a URL (s3://, az://, https://); "sample" and
    "sample-small" are built in. Credentials come from the environment. Files are read in the order of their names."""
    name: ShownText = ""
    """Name of the source, recorded with every document; empty: the wiki's database name ("huwiki"), else its format."""
    weight: float = Field(default=1.0, gt=0, le=100)
    """How many times each of its documents occurs in the corpus, on average."""
    format: Literal["auto", SourceKind] = "auto"
    """Format of its files; "auto": detected from their content. "datasets" is a folder saved by Hugging Face
    `datasets` (`save_to_disk`)."""
    lines: Literal["paragraphs", "sentences", "articles", "wrapped"] = "paragraphs"
    """What a line of plain text is. "paragraphs" and "sentences": one paragraph or sentence, with blank lines between
    documents; "articles": an entire document; "wrapped": part of a paragraph, where blank lines separate paragraphs
    and each file is one document."""
    text: str = "text"
    """The key (JSONL) or column (Parquet, datasets) that holds the text."""
    licence: ShownText = ""
    """Licence of its texts, recorded with every document; empty: "CC BY-SA" for Wikimedia wikis, else "unknown"."""


class SplitConfig(Section):
    """How paragraphs are split into sentences."""

    command: tuple[str, ...] = ()
    """Command line of an external sentence splitter, e.g. ["quntoken", "-f", "spl"]; empty: the built-in rules. The
    program reads paragraphs from standard input and writes one sentence per line; see `corpus.program`. It is
    identified only by this command: a new version under the same command goes unnoticed."""
    timeout: float = runtime_only(600.0, gt=0)
    """Time limit of the program, in seconds per million characters; a smaller batch gets the full time."""


class DeduplicateConfig(Section):
    """Which repetitions are removed from the corpus; of equal or similar texts the first in source order is kept."""

    documents: bool = True
    """Whether to drop documents whose text equals that of an earlier one."""
    near_documents: bool = True
    """Whether to drop documents that are similar to an earlier one, detected by MinHash over runs of 5 words (10
    characters in languages written without spaces); case, punctuation and the values of numbers are ignored."""
    similarity: float = Field(default=0.65, ge=0.5, le=1)
    """Similarity from which two documents count as near-duplicates: the share of their runs of words that they have in
    common (estimated Jaccard). A copy with every fortieth word changed has 0.78. Below 0.6 some pairs are never
    compared."""
    paragraphs: bool = True
    """Whether to remove paragraphs whose text equals that of an earlier one, ignoring letter case."""
    min_words: int = Field(default=20, ge=1)
    """Fewest words of a paragraph that may be removed as repeated, because short ones such as list items repeat
    legitimately (words; in languages written without spaces two characters count as one word)."""

    @model_validator(mode="after")
    def _measures_are_used(self) -> Self:
        for measure, rule in (("similarity", "near_documents"), ("min_words", "paragraphs")):
            if not getattr(self, rule) and getattr(self, measure) != type(self).model_fields[measure].default:
                raise ValueError(f"deduplicate.{measure} has no effect because {rule} is off: remove the key")
        return self


class WikitextConfig(Section):
    """How the markup of wiki pages is converted to text."""

    maths: Literal["drop", "tex"] = "drop"
    """What formulas in <math>, <chem> and <ce> become: "drop": nothing; "tex": their TeX on one line."""
    templates: UserPath | None = known_by_content(None)
    """A TOML file of template patterns, in the format of the built-in `templates.toml`; its entries take precedence."""
    expand_templates: bool = True
    """Whether to expand templates that the dump itself defines as one line of plain text; the dump is searched for
    them before the articles are read."""


class CorpusConfig(Section):
    """From Wikipedia dumps and other texts to shards of sentences."""

    source: tuple[SourceConfig, ...] = Field(min_length=1)
    """A path, a table with a path and other keys, or a list of these, in order. A file is identified by its size and a
    sample of its content (all of it up to 4 MiB), not by its name; its SHA-256 is recorded in the manifest."""
    language: str
    """Wiki code of the language, e.g. "hu", "uk", "ltg"."""
    keep_disambiguation: bool = False
    """Whether to keep disambiguation pages."""
    wikitext: WikitextConfig = WikitextConfig()
    """How the markup of wiki pages is converted to text."""
    split: SplitConfig = SplitConfig()
    """How paragraphs are split into sentences."""
    filter: FilterConfig = FilterConfig()
    """Which documents are good enough to keep."""
    deduplicate: DeduplicateConfig = DeduplicateConfig()
    """Which repetitions are removed from the corpus."""
    shard_bytes: int = Field(default=4 * 2**20, ge=1024, le=128 * 2**20)
    """Approximate size of the uncompressed text of a shard, in bytes; all shards have about equally many sentences."""
    shards: int | None = Field(default=None, ge=1, le=100_000)
    """Number of shards, whatever their size in bytes; none: determined by `shard_bytes`."""
    seed: int = Field(default=12345, ge=0)
    """Random seed that selects which documents get one more copy where the weight of their source is not an integer."""
    contamination: tuple[UserPath, ...] = known_by_content(())
    """Evaluation files whose overlap with the finished corpus is measured: one sentence or example per line, or JSON
    lines (`.jsonl`). The corpus itself is not changed."""
    workers: int = runtime_only(0, ge=0)
    """Number of worker processes; 0: one per processor."""
    cache_dir: UserPath = runtime_only(Path("downloads"))
    """Folder for the local copies of remote sources; a file already in it is never downloaded again."""

    @model_validator(mode="after")
    def _something_is_split(self) -> Self:
        if self.split.command and all(source.lines == "sentences" for source in self.source):
            raise ValueError('split.command has no effect because every source has lines = "sentences": remove the key')
        return self

    @field_validator("language")
    @classmethod
    def _is_a_code(cls, language: str) -> str:
        return wiki_code(language)

    @field_validator("source", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        """Convert one source to a list, and each path given alone to a table with only that path."""
        values = value if isinstance(value, list | tuple) else [value]
        return [{"path": source} if isinstance(source, str) else source for source in values]


def sections(config: CorpusConfig) -> dict[str, Section]:
    """The settings that determine the corpus."""
    return {"corpus": config}
