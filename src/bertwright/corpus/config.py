"""The recipe section `[corpus]`: sources, document filter, sentence splitting, deduplication and wikitext."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    Field,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)

from bertwright.core.config import Section, ShownText, UserPath, known_by_content, runtime_only
from bertwright.core.plugins import is_known, load_plugin
from bertwright.corpus.wikis import wiki_code

TURKUNLP: dict[str, Any] = {
    "min_mean_words": 4.0, "min_sentences": 3, "max_sentences": 1000, "min_tokens": 20, "max_tokens": 10_000,
    "max_wordless": 0.2, "min_running": 0.0, "max_repeated": 1.0, "max_punctuation": 0.075, "max_upper": 0.1,
    "max_digits": 0.075, "max_foreign": 0.02, "min_words": 30, "references": "keep",
}  # fmt: skip
"""Settings of the TurkuNLP wiki-bert-pipeline (config/filter.sh)."""


class FilterConfig(Section):
    """The document filter; a document is dropped at the first test it fails.

    The paragraph rules (`references` and the fields after it) run before the tests; only `references` is on by default.
    """

    enabled: bool = True
    """Whether to test documents at all."""
    preset: Literal["general", "turkunlp"] = "general"
    """How documents are measured, and the defaults of thresholds that the recipe does not set. "general": for any wiki;
    recognises letters, words and punctuation by Unicode properties, and drops stubs, lists, tables of numbers and other
    languages. "turkunlp": the filter of the TurkuNLP wiki-bert-pipeline; recognises letters and words by the alphabet
    of one language, and drops long documents too."""
    keep_dropped: bool = True
    """Whether to save dropped documents, each with the reason, in the folder `dropped` of the corpus."""
    min_mean_words: float = Field(default=0.0, ge=0)
    """Fewest words per sentence, on average (turkunlp: 4)."""
    min_sentences: int = Field(default=1, ge=0)
    """Fewest sentences in a document; 1: stubs of one sentence are kept (turkunlp: 3)."""
    max_sentences: int = Field(default=0, ge=0)
    """Most sentences in a document; 0: any number (turkunlp: 1,000)."""
    min_tokens: int = Field(default=0, ge=0)
    """Fewest space-separated tokens in a document (words in languages written without spaces; turkunlp: 20)."""
    max_tokens: int = Field(default=0, ge=0)
    """Most space-separated tokens in a document (words in languages written without spaces); 0: any number (turkunlp:
    10,000)."""
    max_wordless: float = Field(default=1.0, ge=0, le=1)
    """Largest share of sentences without a single word (turkunlp: 0.2)."""
    min_running: float = Field(default=0.4, ge=0, le=1)
    """Smallest share of the characters that are in sentences of six or more words; less is a list (turkunlp: 0)."""
    max_repeated: float = Field(default=0.3, ge=0, le=1)
    """Largest share of the characters that are in sentences repeating an earlier sentence of the document (turkunlp: 1,
    any share)."""
    max_punctuation: float = Field(default=0.25, ge=0, le=1)
    """Largest share of punctuation marks and symbols among the characters, without those that only one script has, such
    as the tsheg of Tibetan (turkunlp: ASCII punctuation only, 0.075)."""
    max_upper: float = Field(default=0.25, ge=0, le=1)
    """Largest share of upper-case letters among the characters (turkunlp: 0.1)."""
    max_digits: float = Field(default=0.2, ge=0, le=1)
    """Largest share of digits among the characters (turkunlp: 0.075)."""
    max_foreign: float = Field(default=0.2, ge=0, le=1)
    """Largest share of foreign letters among the characters. "general": letters of scripts in which neither the corpus
    language nor any of `languages` is written; Latin letters count only where there are more than three for each letter
    of those languages' scripts. "turkunlp": every letter outside the alphabet, 0.02."""
    min_words: int = Field(default=10, ge=0)
    """Fewest words in a document. A word is a run of letters; in scripts without spaces, every two letters (Chinese,
    Japanese) or four letters (Thai, Lao, Khmer, Burmese, Tibetan). "turkunlp": two or more letters of the alphabet,
    30."""
    alphabet: str = ""
    """Lower-case letters that words consist of, for the preset "turkunlp"; empty: the alphabets of the corpus language
    and of `languages`, or the letters of their scripts."""
    languages: tuple[str, ...] = ()
    """Languages that a document may be in (wiki codes); empty: the corpus language."""
    identify: bool = True
    """Whether to identify the language of documents and drop those in another one; without effect unless enough texts
    in all of the wanted languages were measured (`confusions.tsv`)."""
    references: Literal["keep", "drop"] = "drop"
    """What to do with paragraphs that are references: citations recognised by their form (book numbers, years, pages,
    web addresses), and the lists in sections of sources (turkunlp: keep)."""
    boilerplate: bool = False
    """Whether to remove paragraphs with a sign of English web boilerplate: "javascript", "lorem ipsum", a curly
    bracket, or a phrase about cookies, terms of use or privacy policies."""
    patterns: tuple[str, ...] = ()
    """Regular expressions, matched ignoring letter case; a paragraph that contains a match is removed."""
    emails: Literal["keep", "mask", "drop"] = "keep"
    """What to do with e-mail addresses: keep them, mask them as name@example.com, or drop the paragraph."""
    phones: Literal["keep", "mask", "drop"] = "keep"
    """What to do with telephone numbers: keep them, mask them as 000 000 000, or drop the paragraph."""

    @model_validator(mode="before")
    @classmethod
    def _preset_fills_in(cls, values: Any) -> Any:
        """Fill in the preset's values for keys that are not set; keys that are set take precedence."""
        if isinstance(values, dict) and values.get("preset") == "turkunlp":
            return TURKUNLP | values
        return values

    @model_validator(mode="after")
    def _everything_is_used(self) -> Self:
        if self.alphabet and self.preset != "turkunlp":
            raise ValueError(
                'filter.alphabet is read only by preset = "turkunlp"; the general preset goes by scripts. Remove '
                "filter.alphabet, or set the preset"
            )
        for minimum, maximum in (("min_sentences", "max_sentences"), ("min_tokens", "max_tokens")):
            if 0 < getattr(self, maximum) < getattr(self, minimum):
                raise ValueError(
                    f"filter.{minimum} = {getattr(self, minimum)} is more than filter.{maximum} = "
                    f"{getattr(self, maximum)}, so every document would be dropped: lower the minimum, or set "
                    f"{maximum} = 0 for no limit"
                )
        fields = type(self).model_fields
        usual = {name: fields[name].default for name in TURKUNLP} | {"preset": "general", "languages": ()}
        unread = [name for name, default in usual.items() if getattr(self, name) != default]
        if unread and not self.enabled:
            raise ValueError(
                f"filter.{unread[0]} is not read because filter.enabled = false: remove one of the two keys"
            )
        return self

    @field_validator("languages")
    @classmethod
    def _are_codes(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(wiki_code, languages))

    @field_validator("patterns")
    @classmethod
    def _compiles(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a valid regular expression: {error}") from error
        return patterns


VERSION = 12
"""Incremented when a change to the stage's code changes its output."""


SourceKind = Literal["dump", "text", "jsonl", "cirrus", "html", "parquet", "wikiextractor", "datasets"]
"""Names of the built-in source formats; `corpus.sources.known` imports the code that reads each of them."""
SOURCES = "bertwright.sources"
"""The group of entry points for source formats of other packages, which a recipe names like a built-in one."""


def _format(value: Any, built_in: ValidatorFunctionWrapHandler) -> Any:
    """Accept a format of another package, which the recipe names by its entry point or as `package:FORMAT`."""
    if isinstance(value, str) and value not in ("auto", *get_args(SourceKind)) and is_known(SOURCES, value):
        load_plugin(SOURCES, value)
        return value
    return built_in(value)


class SourceConfig(Section):
    """One source of text. It is identified by its content, so its path may change."""

    path: Annotated[str, AfterValidator(os.path.expanduser)] = runtime_only(..., min_length=1)
    """A file, a folder, a glob pattern such as "novels/*.txt", or a URL (s3://, az://, https://); "sample" and
    "sample-small" are built in. Credentials come from the environment. Files are read in the order of their names."""
    name: ShownText = ""
    """Name of the source, recorded with every document; empty: the wiki's database name ("huwiki"), else its format."""
    weight: float = Field(default=1.0, gt=0, le=100)
    """How many times each of its documents occurs in the corpus, on average."""
    format: Annotated[Literal["auto", SourceKind], WrapValidator(_format)] = "auto"
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
    """A TOML file of template patterns (docs/how-to/clean-text.md explains the format); its entries take precedence."""
    expand_templates: bool = True
    """Whether to expand templates that the dump itself defines as one line of plain text; the dump is searched for
    them before the articles are read."""
    unproofread_pages: bool = False
    """Whether to read also the pages of scanned books in a Wikisource that only a program has read so far (level 1):
    their text has errors of character recognition."""


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
        return as_sources(value)


def as_sources(value: Any) -> Any:
    """Convert one source to a list, and each path given alone to a table with only that path."""
    values = value if isinstance(value, list | tuple) else [value]
    return [{"path": source} if isinstance(source, str) else source for source in values]


def sections(config: CorpusConfig) -> dict[str, Section]:
    """The settings that determine the corpus."""
    return {"corpus": config}
