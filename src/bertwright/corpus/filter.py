"""The document filter: tests of the counts of `measures.py`, in the order of the TurkuNLP wiki-bert-pipeline.

The preset "general" is for any wiki: it drops stubs, lists, tables of numbers, text in capitals, repeated sentences and
other languages, but no document for being long. The preset "turkunlp" has the tests and thresholds of
scripts/filterdocs.py, except that headings do not count as sentences, and CLD2 and py3langid identify the language
instead of langdetect (same results on entire documents, 50 times faster).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bertwright.corpus.config import FilterConfig
from bertwright.corpus.language import Identifier
from bertwright.corpus.measures import ByAlphabet, ByScript


class Reason(NamedTuple):
    """A reason why documents are dropped."""

    meaning: str
    """What is wrong with the documents, as a phrase."""
    remedy: str
    """What most likely needs to change where every document is dropped for this reason."""


_LANGUAGE = "corpus.language is wrong: it must name the language of the text"
_BLANK_LINES = "no blank lines between the documents of a plain text; add them, or raise corpus.filter."
_NO_TEXT = "the source is not running text: see corpus.filter."

REASONS = {
    "empty": Reason("no text left after cleaning", "the source has no article text: use a pages-articles dump"),
    "mean_words": Reason("too few words per sentence", _LANGUAGE),
    "min_sentences": Reason("too few sentences", "the documents are too short: see corpus.filter.min_sentences"),
    "max_sentences": Reason("too many sentences", f"{_BLANK_LINES}max_sentences"),
    "min_tokens": Reason("too short", "the documents are too short: see corpus.filter.min_tokens"),
    "max_tokens": Reason("too long", f"{_BLANK_LINES}max_tokens"),
    "wordless": Reason("too many sentences without a word", _LANGUAGE),
    "punctuation": Reason("too much punctuation", f"{_NO_TEXT}max_punctuation"),
    "upper": Reason("too many capitals", f"{_NO_TEXT}max_upper"),
    "digits": Reason("too many digits", f"{_NO_TEXT}max_digits"),
    "foreign": Reason("too many foreign letters", f"{_LANGUAGE}; see corpus.filter.max_foreign"),
    "min_words": Reason("too few words", "the documents are too short: see corpus.filter.min_words"),
    "running": Reason("too little running text (a list)", f"{_NO_TEXT}min_running"),
    "repeated": Reason("the same sentences over and over", f"{_NO_TEXT}max_repeated"),
    "language": Reason(
        "in another language",
        "corpus.language (or corpus.filter.languages) is wrong: it must name the language of the text",
    ),
}
"""All reasons by name: no text left after cleaning, the tests of `DocumentFilter` in order, the language."""


class DocumentFilter:
    """The filter of one corpus; `verdict` judges one document."""

    def __init__(self, config: FilterConfig, language: str) -> None:
        self._config = config
        wanted = config.languages or (language,)
        self._identifier = Identifier(wanted) if config.identify else None
        everyone = dict.fromkeys((language, *wanted))
        by_alphabet, tokens = config.preset == "turkunlp", config.min_tokens > 0 or config.max_tokens > 0
        self._measures = ByAlphabet(everyone, config.alphabet) if by_alphabet else ByScript(everyone, tokens=tokens)

    def verdict(self, sentences: list[str]) -> tuple[str | None, str]:
        """(the reason why the document is dropped, or None; the code of its language, or "" if not identified).

        The reason is a name in `REASONS`.
        """
        if not sentences:
            return "empty", ""
        if not self._config.enabled:
            return None, ""
        reason = next((name for name, failed in self._tests(sentences) if failed), None)
        # Identified last: py3langid takes milliseconds per document.
        if reason or not self._identifier:
            return reason, ""
        language = self._identifier.language(" ".join(sentences))
        return ("language" if language and not self._identifier.wants(language) else None), language

    def _tests(self, sentences: list[str]) -> Iterator[tuple[str, bool]]:
        """Yield each test's name and whether the document fails it."""
        config, measures = self._config, self._measures.measure(sentences)
        count, characters = measures.sentences, measures.characters
        # In the order of the original, because the first failed test is counted as the reason.
        yield "mean_words", measures.words < config.min_mean_words * count
        yield "min_sentences", count < config.min_sentences
        yield "max_sentences", 0 < config.max_sentences < count
        yield "min_tokens", measures.tokens < config.min_tokens
        yield "max_tokens", 0 < config.max_tokens < measures.tokens
        yield "wordless", measures.wordless > config.max_wordless * count
        yield "punctuation", measures.punctuation > config.max_punctuation * characters
        yield "upper", measures.upper > config.max_upper * characters
        yield "digits", measures.digits > config.max_digits * characters
        yield "foreign", measures.foreign > config.max_foreign * characters
        yield "min_words", measures.words < config.min_words
        yield "running", measures.running < config.min_running * characters
        yield "repeated", measures.repeated > config.max_repeated * characters
