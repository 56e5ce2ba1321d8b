"""The settings of the document filter: `corpus.filter`."""

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
    """Smallest share of the characters that are in sentences of six or more words; less is a list (turkunlp: 0)."""
    max_repeated: float = Field(default=0.3, ge=0, le=1)
    """Largest share of the characters that are in sentences repeating an earlier sentence of the document (turkunlp: 1,
    any share)."""
    max_punctuation: float = Field(default=0.25, ge=0, le=1)
    """Largest share of punctuation marks and symbols among the characters (turkunlp: ASCII punctuation only, 0.075)."""
    max_upper: float = Field(default=0.25, ge=0, le=1)
    """Largest share of upper-case letters among the characters (turkunlp: 0.1)."""
    max_digits: float = Field(default=0.2, ge=0, le=1)
    """Largest share of digits among the characters (turkunlp: 0.075)."""
    max_foreign: float = Field(default=0.2, ge=0, le=1)
    """Largest share of foreign letters among the characters. "general": letters of scripts in which neither the corpus
    language nor any of `languages` is written; Latin letters count only where there are more than three for each letter
    of those languages' scripts. "turkunlp": every letter outside the alphabet, 0.02."""
    min_words: int = Field(default=30, ge=0)
    """Fewest words in a document. A word is a run of letters; in scripts without spaces, every two letters (Chinese,
    Japanese) or four letters (Thai, Lao, Khmer, Burmese, Tibetan). "turkunlp": two or more letters of the alphabet,
    30."""
    alphabet: str = ""
    """Lower-case letters that words consist of, for the preset "turkunlp"; empty: the alphabets of the corpus language
    and of `languages`, or the letters of their scripts."""
    languages: tuple[str, ...] = ()
    """Languages that a document may be in (wiki codes); empty: the corpus language."""
    identify: bool = True
    """Whether to identify the language of documents and drop those in another one; without effect unless CLD2 or
    py3langid knows all of the wanted languages."""
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
