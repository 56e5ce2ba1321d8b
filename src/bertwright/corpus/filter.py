"""Which documents are good enough: the rules of the TurkuNLP wiki-bert-pipeline (scripts/filterdocs.py), in its order.

Every share is over the characters of the sentences. A word is an optional capital and two or more letters of the
alphabet between word boundaries (one in Korean). We differ in four points: headings are not sentences here and count
for nothing, the language is told by CLD2 and py3langid instead of langdetect (equal on whole documents, 50 times
faster), a language without an alphabet in the table gets that of its script instead of a-z, and in a language written
without spaces, such as Chinese, any two letters in a row are a word, and the words are the tokens.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bertwright.corpus.alphabet import letters, shortest_word, spaced
from bertwright.corpus.config import FilterConfig
from bertwright.corpus.language import Identifier


class Reason(NamedTuple):
    """Why documents are dropped."""

    meaning: str
    """What is wrong with them, as a phrase."""
    remedy: str
    """What most likely has to change where the reason drops everything."""


_ALPHABET = "corpus.language must name the language the text is in, or corpus.filter.alphabet its letters"
_BLANK_LINES = "documents of a plain text are separated by blank lines; or raise corpus.filter."

REASONS = {
    "empty": Reason("no text left after cleaning", "the source has no article text: a pages-articles dump is needed"),
    "mean_words": Reason("too few words per sentence", _ALPHABET),
    "min_sentences": Reason("too few sentences", "the documents are too short: see corpus.filter.min_sentences"),
    "max_sentences": Reason("too many sentences", f"{_BLANK_LINES}max_sentences"),
    "min_tokens": Reason("too short", "the documents are too short: see corpus.filter.min_tokens"),
    "max_tokens": Reason("too long", f"{_BLANK_LINES}max_tokens"),
    "wordless": Reason("too many sentences without a word", _ALPHABET),
    "punctuation": Reason("too much punctuation", "the source is no running text: see corpus.filter.max_punctuation"),
    "upper": Reason("too many capitals", "the source is no running text: see corpus.filter.max_upper"),
    "digits": Reason("too many digits", "the source is no running text: see corpus.filter.max_digits"),
    "foreign": Reason("too many foreign letters", _ALPHABET),
    "min_words": Reason("too few words", "the documents are too short: see corpus.filter.min_words"),
    "language": Reason(
        "in another language", "corpus.language (or corpus.filter.languages) must name the language the text is in"
    ),
}
"""Every reason by its name: text that cleaning emptied, the tests of `DocumentFilter` in order, the language."""


class DocumentFilter:
    """The rules for one corpus; a `verdict` for each document."""

    def __init__(self, config: FilterConfig, language: str) -> None:
        self._config = config
        wanted = config.languages or (language,)
        self._identifier = Identifier(wanted) if config.identify else None
        everyone = dict.fromkeys((language, *wanted))
        alphabet = config.alphabet or "".join(letters(code) for code in everyone)
        self._alphabet = frozenset(alphabet + alphabet.upper())
        self._spaced = all(map(spaced, everyone))
        self._word = _word_pattern(alphabet, min(map(shortest_word, everyone)) if self._spaced else 0)

    def verdict(self, sentences: list[str]) -> tuple[str | None, str]:
        """(why the document is dropped or None, the code of its language or "" where that is not known).

        Why is a name in `REASONS`.
        """
        if not sentences:
            return "empty", ""
        if not self._config.enabled:
            return None, ""
        reason = next((name for name, failed in self._tests(sentences) if failed), None)
        if reason or not self._identifier:
            return reason, ""
        found = self._identifier.language(" ".join(sentences))
        return ("language" if found and not self._identifier.wants(found) else None), found

    def _tests(self, sentences: list[str]) -> Iterator[tuple[str, bool]]:
        """Each test's name and whether the document fails it, computed only as far as it is asked for."""
        config, count = self._config, len(sentences)
        text = "\n".join(sentences)
        words = len(self._word.findall(text))
        yield "mean_words", words < config.min_mean_words * count
        yield "min_sentences", count < config.min_sentences
        yield "max_sentences", count > config.max_sentences
        tokens = len(text.split()) if self._spaced else words
        yield "min_tokens", tokens < config.min_tokens
        yield "max_tokens", tokens > config.max_tokens
        wordless = count - sum(map(bool, map(self._word.search, sentences)))
        yield "wordless", wordless > config.max_wordless * count
        characters = _characters(text)
        total = len(text) - (count - 1)
        yield "punctuation", sum(characters.get(c, 0) for c in string.punctuation) > config.max_punctuation * total
        yield "upper", sum(n for c, n in characters.items() if c.isupper()) > config.max_upper * total
        yield "digits", sum(n for c, n in characters.items() if c.isdigit()) > config.max_digits * total
        foreign = sum(n for c, n in characters.items() if c.isalpha() and c not in self._alphabet)
        yield "foreign", foreign > config.max_foreign * total
        yield "min_words", words < config.min_words


def _characters(text: str) -> dict[str, int]:
    """How often each character occurs: `collections.Counter`, eight times as fast."""
    counts = np.bincount(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4"))
    found = counts.nonzero()[0]
    return dict(zip(map(chr, found.tolist()), counts[found].tolist(), strict=True))


def _word_pattern(alphabet: str, shortest: int) -> re.Pattern[str]:
    """The word of a lower-case alphabet; `shortest` 0: two letters in a row, and what is left of an odd number.

    `\\b` will not do: combining marks, common in Indic words, are no `\\w`.
    """
    letters = set(alphabet)
    capitals = {c.upper() for c in letters if len(c.upper()) == 1} - letters
    if not shortest:
        return re.compile(f"[{_ranges(letters | capitals)}]{{1,2}}")
    lower, capital = _ranges(letters), f"[{_ranges(capitals)}]?" if capitals else ""
    return re.compile(rf"(?<![\w{lower}]){capital}[{lower}]{{{shortest},}}(?![\w{lower}])")


def _ranges(characters: set[str]) -> str:
    """The inside of a `[class]` of a regular expression."""
    runs: list[list[int]] = []
    for code in sorted(map(ord, characters)):
        if runs and code == runs[-1][1] + 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in runs)
