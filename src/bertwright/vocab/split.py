"""Text to BERT's words: normalised, and cut at spaces, punctuation and CJK characters.

The rules are those of the library objects in `normal`; here they are asked once per character where that is enough.
Behind NFC they look at one character at a time: it is dropped, replaced or set apart whatever stands beside it. NFC
looks at neighbours, so a word that is not in NFC goes to the library whole. So does a word with a character that
Unicode 3.2 (2002) did not have, or that is no letter, mark, number, punctuation mark or symbol: on the others all
versions of Unicode agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from unicodedata import is_normalized, ucd_3_2_0

from tokenizers import normalizers, pre_tokenizers

_ASK = "\0"
_SENTENCES_AT_ONCE = 1000


class WordSplitter:
    """The words that BERT makes of text, under one normalisation."""

    def __init__(self, normal: normalizers.Normalizer, split: pre_tokenizers.PreTokenizer) -> None:
        self._normal, self._split = normal, split
        self._characters = _Characters(self.by_library)

    def words(self, text: str) -> list[str]:
        """BERT's words of a text."""
        return " ".join(self.lines(text.split(" "))).split()

    def lines(self, words: Sequence[str]) -> list[str]:
        """For each of `words`, which hold no space, the words that BERT makes of it, with one space or more between."""
        text = " ".join(words)
        spaced = text.translate(self._characters)
        lines = spaced.split("\n") if words else []
        if _ASK in spaced or not is_normalized("NFC", text):
            for i, word in enumerate(words):
                if _ASK in lines[i] or not is_normalized("NFC", word):
                    lines[i] = " ".join(self.by_library(word))
        return lines

    def by_library(self, text: str) -> list[str]:
        """The same as `words`, slowly."""
        return [word for word, _ in self._split.pre_tokenize_str(self._normal.normalize_str(text))]


def count_words(sentences: Iterable[str], splitter: WordSplitter) -> Counter[str]:
    """How often each of BERT's words occurs; the words between spaces are counted first, and then split once each."""
    spaced, words = Counter[str](), Counter[str]()
    sentences = iter(sentences)
    while batch := list(islice(sentences, _SENTENCES_AT_ONCE)):
        spaced.update(" ".join(batch).split(" "))
    for line, occurrences in zip(splitter.lines(list(spaced)), spaced.values(), strict=True):
        for word in line.split():
            words[word] = words.get(word, 0) + occurrences
    return words


class _Characters(dict[int, str]):
    """What stands in a line for a character, by code point: itself or another, alone or between spaces, or nothing."""

    def __init__(self, by_library: Callable[[str], list[str]]) -> None:
        super().__init__({ord(" "): "\n"})
        self._by_library = by_library

    def __missing__(self, code: int) -> str:
        character = chr(code)
        known = ucd_3_2_0.category(character)[0] in "LMNPS"
        # Between zeros, because nothing combines with them: beside a letter an accent would become part of it.
        self[code] = " ".join(self._by_library(f"0{character}0"))[1:-1] if known else _ASK
        return self[code]
