"""The document filter: counts of a document, and tests of them in the order of the TurkuNLP wiki-bert-pipeline.

The preset "general" is for any wiki: it drops stubs, lists, tables of numbers, text in capitals, repeated sentences and
other languages, but no document for being long. The preset "turkunlp" has the tests and thresholds of
scripts/filterdocs.py, except that headings do not count as sentences, and CLD2 and py3langid identify the language
instead of langdetect (same results on entire documents, 50 times faster).

Documents are measured by Unicode script (`ByScript`), or as in the original by one alphabet (`ByAlphabet`): a word is
an optional capital and two or more letters of the alphabet between word boundaries (one in Korean), and punctuation is
ASCII. `ByAlphabet` differs from the original in two points: a language without an alphabet in the table gets the
letters of its script instead of a-z, and in a language written without spaces any two consecutive letters are a word,
and the words are the tokens.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertwright.corpus.characters import compose, is_capital, letters, ranges, script, scripts, shortest_word, spaced
from bertwright.corpus.config import FilterConfig
from bertwright.corpus.language import Identifier
from bertwright.corpus.words import Kind, are, code_points, count_tokens, kinds_of, pieces, words_by_line

BATCH = 2**20
"""Characters measured at a time, at most twice this number; each takes about 20 bytes of memory."""
RUNNING = 6
"""Fewest words of a sentence that counts as running text."""
_MOST_LATIN = 3
"""Most Latin letters per letter of the language's own scripts before the Latin letters count as foreign."""


@dataclass(frozen=True)
class Measures:
    """Counts of one document; only the characters of its sentences are counted."""

    sentences: int
    wordless: int
    """Sentences without a word."""
    tokens: int
    words: int
    characters: int
    running: int
    """Characters in sentences of `RUNNING` words or more."""
    repeated: int
    """Characters in sentences that repeat an earlier sentence of the document."""
    punctuation: int
    upper: int
    digits: int
    foreign: int
    """Letters that the language is not written with."""


class ByScript:
    """Measures letters, words and punctuation by their Unicode properties, for the languages with these codes.

    With `tokens=False` the token count is 0; counting tokens takes as long as everything else together.
    """

    def __init__(self, languages: Iterable[str], *, tokens: bool = True) -> None:
        self._own = frozenset[str]().union(*map(scripts, languages))
        self._tokens = tokens

    def measure(self, sentences: list[str]) -> Measures:
        """The counts of a document with at least one sentence, none of them empty."""
        sums, characters = Counter[str](), Counter[str]()
        for batch in _batches(sentences):
            text = "\n".join(batch)
            codes = code_points(text)
            characters.update(_occurrences(codes))
            sums.update(_sums(batch, kinds_of(codes)), tokens=count_tokens(text) if self._tokens else 0)
        return Measures(
            **sums,
            repeated=_repeated(sentences),
            upper=sum(n for c, n in characters.items() if is_capital(c)),
            foreign=self._foreign(characters),
        )

    def _foreign(self, characters: Mapping[str, int]) -> int:
        """The number of letters of other scripts. Latin names and titles occur in any encyclopaedia, so Latin letters
        are counted only where they far outnumber the letters of the language's own scripts.
        """
        own = latin = other = 0
        for character, count in characters.items():
            if not character.isalpha():
                continue
            own_script = script(character)
            if own_script in self._own:
                own += count
            elif own_script == "LATIN":
                latin += count
            elif own_script:
                other += count
        return other + (latin if latin > _MOST_LATIN * own else 0)


def _batches(sentences: list[str]) -> Iterator[list[str]]:
    """Yield the sentences in batches, to bound memory. A sentence longer than a batch counts as several."""
    if sum(map(len, sentences)) <= BATCH:
        yield sentences
        return
    batch, size = list[str](), 0
    # The arrays of a text take about 20 bytes a character, and a document may be an entire file.
    for piece in chain.from_iterable(map(pieces, sentences)):
        if size > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(piece)
        size += len(piece)
    yield batch


def _sums(sentences: list[str], kinds: NDArray[np.uint8]) -> dict[str, int]:
    """The counts that add up over batches; `kinds` describes the sentences joined by one separator character."""
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    words, inside = words_by_line(kinds, np.append(0, np.cumsum(lengths + 1)[:-1]))
    # `bincount` takes ten times as long as three comparisons.
    joiners, marks, digits = (int(np.count_nonzero(are(kinds, k))) for k in (Kind.JOINER, Kind.MARK, Kind.DIGIT))
    return {
        "sentences": len(sentences),
        "wordless": int((words == 0).sum()),
        "words": int(words.sum()),
        "characters": int(lengths.sum()),
        "running": int(lengths[words >= RUNNING].sum()),
        "punctuation": marks + joiners - inside,
        "digits": digits,
    }


class ByAlphabet:
    """Measures letters and words by an alphabet: the given one, or that of the languages with these codes."""

    def __init__(self, languages: Iterable[str], alphabet: str) -> None:
        codes = list(languages)
        alphabet = compose(alphabet) or "".join(letters(code) for code in codes)
        self._alphabet = frozenset(alphabet + alphabet.upper())
        self._spaced = all(map(spaced, codes))
        self._word = word_pattern(alphabet, min(map(shortest_word, codes)) if self._spaced else 0)

    def measure(self, sentences: list[str]) -> Measures:
        """The counts of a document with at least one sentence."""
        text = "\n".join(sentences)
        words = [len(self._word.findall(sentence)) for sentence in sentences]
        characters = _occurrences(code_points(text))
        return Measures(
            sentences=len(sentences),
            wordless=words.count(0),
            tokens=len(text.split()) if self._spaced else sum(words),
            words=sum(words),
            characters=len(text) - (len(sentences) - 1),
            running=sum(len(sentence) for sentence, n in zip(sentences, words, strict=True) if n >= RUNNING),
            repeated=_repeated(sentences),
            punctuation=sum(characters.get(c, 0) for c in string.punctuation),
            upper=sum(n for c, n in characters.items() if is_capital(c)),
            digits=sum(n for c, n in characters.items() if c.isdigit()),
            foreign=sum(n for c, n in characters.items() if c.isalpha() and c not in self._alphabet),
        )


def word_pattern(alphabet: str, shortest: int) -> re.Pattern[str]:
    """The pattern of a word in a lower-case alphabet with at least `shortest` letters.

    With `shortest` 0 every two consecutive letters are a word, and so is the last one of an odd number.
    """
    letters = set(alphabet)
    # The upper case of ß is two letters, which a character class cannot hold.
    capitals = {c.upper() for c in letters if len(c.upper()) == 1} - letters
    if not shortest:
        return re.compile(f"[{ranges(letters | capitals)}]{{1,2}}")
    lower, capital = ranges(letters), f"[{ranges(capitals)}]?" if capitals else ""
    # `\b` does not work: combining marks, common in Indic words, do not match `\w`.
    return re.compile(rf"(?<![\w{lower}]){capital}[{lower}]{{{shortest},}}(?![\w{lower}])")


def _repeated(sentences: list[str]) -> int:
    return sum(map(len, sentences)) - sum(map(len, set(sentences)))


def _occurrences(codes: NDArray[np.uint32]) -> dict[str, int]:
    """How often each character occurs, by character."""
    # `collections.Counter` takes eight times as long.
    counts = np.bincount(codes)
    present = counts.nonzero()[0]
    return dict(zip(map(chr, present.tolist()), counts[present].tolist(), strict=True))


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
        # Identified last, because py3langid, which may be asked, takes milliseconds per document.
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
