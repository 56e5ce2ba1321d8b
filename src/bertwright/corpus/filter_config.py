"""The knobs of the document filter: `corpus.filter`."""

from __future__ import annotations

import re
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from bertwright.core.config import Section
from bertwright.corpus.wikis import wiki_code

TURKUNLP: dict[str, Any] = {
    "min_mean_words": 4.0, "min_sentences": 3, "max_sentences": 1000, "min_tokens": 20, "max_tokens": 10_000,
    "max_wordless": 0.2, "min_running": 0.0, "max_repeated": 1.0, "max_punctuation": 0.075, "max_upper": 0.1,
    "max_digits": 0.075, "max_foreign": 0.02, "min_words": 30, "references": "keep",
}  # fmt: skip
"""Settings of the TurkuNLP wiki-bert-pipeline (config/filter.sh)."""


class FilterConfig(Section):
    """The document filter; a document is dropped at the first test it fails.

    The rules about paragraphs (`references` and after) come first; all but `references` are off unless asked for.
    """

    enabled: bool = True
    """Whether documents are tested at all."""
    preset: Literal["general", "turkunlp"] = "general"
    """How documents are measured, and the thresholds that the recipe leaves out. "general": for any wiki; letters,
    words and marks are told by Unicode, and what is dropped are stubs, lists, tables of numbers and other languages.
    "turkunlp": the filter of the TurkuNLP wiki-bert-pipeline; letters and words are told by the alphabet of one
    language, and long documents are dropped too."""
    keep_dropped: bool = True
    """Whether dropped documents are set aside in the corpus's folder `dropped`, each with the reason."""
    min_mean_words: float = Field(default=0.0, ge=0)
    """Fewest words per sentence, on average (turkunlp: 4)."""
    min_sentences: int = Field(default=2, ge=0)
    """Fewest sentences in a document (turkunlp: 3)."""
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
    """Smallest share of the characters that stand in sentences of six or more words; less is a list (turkunlp: 0)."""
    max_repeated: float = Field(default=0.3, ge=0, le=1)
    """Largest share of the characters that stand in sentences of which the document has an equal one before (turkunlp:
    1, any share)."""
    max_punctuation: float = Field(default=0.25, ge=0, le=1)
    """Largest share of punctuation marks and symbols among the characters (turkunlp: ASCII marks alone, 0.075)."""
    max_upper: float = Field(default=0.25, ge=0, le=1)
    """Largest share of upper-case letters among the characters (turkunlp: 0.1)."""
    max_digits: float = Field(default=0.2, ge=0, le=1)
    """Largest share of digits among the characters (turkunlp: 0.075)."""
    max_foreign: float = Field(default=0.2, ge=0, le=1)
    """Largest share of foreign letters among the characters. "general": those of scripts in which neither the corpus
    language nor any of `languages` is written; Latin letters only where there are three for each of the own scripts.
    "turkunlp": every letter outside the alphabet, 0.02."""
    min_words: int = Field(default=30, ge=0)
    """Fewest words in a document: runs of letters, and in scripts without spaces every two (Chinese, Japanese) or four
    letters (Thai, Lao, Khmer, Burmese, Tibetan). "turkunlp": two or more letters of the alphabet, 30."""
    alphabet: str = ""
    """Lower-case letters of words, for the preset "turkunlp"; empty: those of the corpus language and of `languages`,
    or of their script."""
    languages: tuple[str, ...] = ()
    """Languages a document may be in (wiki codes); empty: the corpus language."""
    identify: bool = True
    """Whether documents in another language are dropped, where CLD2 or py3langid know all of the languages."""
    references: Literal["keep", "drop"] = "drop"
    """What becomes of paragraphs that are references: citations by their shape (book numbers, years, pages, addresses),
    and the lists of sections of sources (turkunlp: keep)."""
    boilerplate: bool = False
    """Whether paragraphs with a mark of English web boilerplate are removed: "javascript", "lorem ipsum", a curly
    bracket, or a phrase about cookies, terms of use or privacy policies."""
    patterns: tuple[str, ...] = ()
    """Regular expressions (letter case aside); a paragraph in which one is found is removed."""
    emails: Literal["keep", "mask", "drop"] = "keep"
    """What becomes of e-mail addresses: kept, masked as name@example.com, or their paragraph is removed."""
    phones: Literal["keep", "mask", "drop"] = "keep"
    """What becomes of telephone numbers: kept, masked as 000 000 000, or their paragraph is removed."""

    @model_validator(mode="before")
    @classmethod
    def _preset_fills_in(cls, values: Any) -> Any:
        """What is said wins over the preset."""
        if isinstance(values, dict) and values.get("preset") == "turkunlp":
            return TURKUNLP | values
        return values

    @model_validator(mode="after")
    def _everything_is_used(self) -> Self:
        if self.alphabet and self.preset != "turkunlp":
            raise ValueError(
                'filter.alphabet is read by preset = "turkunlp" alone, the general one goes by scripts: leave it out, '
                "or set the preset"
            )
        for minimum, maximum in (("min_sentences", "max_sentences"), ("min_tokens", "max_tokens")):
            if 0 < getattr(self, maximum) < getattr(self, minimum):
                raise ValueError(
                    f"filter.{minimum} = {getattr(self, minimum)} is more than filter.{maximum} = "
                    f"{getattr(self, maximum)}, so every document is dropped: lower the one, or set {maximum} = 0 for "
                    "any number"
                )
        fields = type(self).model_fields
        usual = {name: fields[name].default for name in TURKUNLP} | {"preset": "general", "languages": ()}
        unread = [name for name, default in usual.items() if getattr(self, name) != default]
        if unread and not self.enabled:
            raise ValueError(f"filter.{unread[0]} is not read where filter.enabled = false: leave one of the two out")
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
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        return patterns
