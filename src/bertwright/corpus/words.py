"""Words of texts in any script.

Words are counted by spaces, or by
letters in scripts without spaces between words: two letters of Chinese, Japanese and Yi, and four of Thai, Lao, Khmer,
Burmese, Tibetan and their like, count as a word, which is about the length of one in running text. Korean has spaces.
The count does not depend on the language, so a text may mix scripts. Some scripts separate words by a mark (Ethiopic,
Runic), and Tibetan syllables.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from bertwright.corpus.characters import JOINERS, LAST_LETTER, UNSPACED

_IN_TWOS = (
    r"\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf"
    r"\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua48c\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-"
    f"{chr(LAST_LETTER)}"
)
_UNSPACED = re.compile(rf"([{_IN_TWOS}]+)|([{UNSPACED}]+)")
_FIRST_UNSPACED = np.uint32(0x0E01)
"""The code point of the first letter of either class."""
# A quick test, six times as fast where nothing matches. It is a negated class with the most common characters first, so
# that one comparison decides most cases.
_MAY_BE_UNSPACED = re.compile(
    "[^\x00-\u0e00\u2000-\u2e7f\u109e-\u1360\u1362-\u16ea\u16ee-\u177f\u17de-\u194f\u1c00-\u1fff\uac00-\uf8ff]"
)
# Between the syllables of a word in Tibetan, or between words (U+200B): the letters are counted as if there were none.
_BETWEEN = re.compile("[\u0f0b\u0f0c\u200b]+")
# Word separators of scripts that may have no spaces beside them: Ethiopic, Runic, and scripts of antiquity.
_SEPARATORS = re.compile("[\u1361\u16eb-\u16ed\U00010100\U00010101\U0001039f\U000103d0\U0001091f]+(?=\\S)")
# The blocks of single scripts: their marks are a part of any text in the script, and no sign of a table or a list.
_OF_A_SCRIPT = re.compile(
    "[\u0370-\u1fff\u2c00-\u2dff\ua000-\uabff\ufb00-\ufdff\ufe70-\ufefe\U00010000-\U0001cfff\U0001e000-\U0001e8ff]"
)
# Between two letters these are part of the word.
_JOINERS = "'’-"
_PIECE = 2**20


class Kind(IntEnum):
    """The class of a character for the counts below."""

    UNKNOWN = 0  # not seen yet
    OTHER = 1
    LETTER = 2  # or a combining mark, in a script with spaces
    IN_TWOS = 3
    IN_FOURS = 4
    JOINER = 5
    DIGIT = 6
    MARK = 7  # punctuation or a symbol that several scripts share


_OF_CATEGORY = {"L": Kind.LETTER, "M": Kind.LETTER, "N": Kind.DIGIT, "P": Kind.MARK, "S": Kind.MARK}
_kinds = np.zeros(0x110000, np.uint8)
"""The kind of each character seen so far, by code point."""


def pieces(text: str) -> Iterator[str]:
    """Yield the text in pieces of at most a million characters, each but the first beginning with white space if
    possible. The arrays and lists used for counting take some twenty times the memory of the text, and a line may be
    an entire file.
    """
    start = 0
    # Counting a line of 33 MB at once took 1.3 GB; in pieces it takes 0.4 GB.
    while len(text) - start > _PIECE:
        space = max(text.rfind(" ", start + 1, start + _PIECE), text.rfind("\n", start + 1, start + _PIECE))
        stop = space if space > start else start + _PIECE
        yield text[start:stop]
        start = stop
    yield text[start:] if start else text


def count_tokens(text: str) -> int:
    """The number of words separated by spaces, including marks and numbers.

    A run of letters of a script without spaces counts by its length.
    """
    return _count_tokens(text) if len(text) <= _PIECE else sum(map(_count_tokens, pieces(text)))


def _count_tokens(text: str) -> int:
    return len(text.split()) + _more_tokens(text)


def count_tokens_of_sentences(text: str, *, unspaced: bool = True) -> int:
    """`count_tokens` in a third of the time, for a text whose only white space is single spaces within it.

    Sentences joined by spaces are such a text. `unspaced`: whether it may have letters that `has_unspaced` finds.
    """
    if len(text) > _PIECE:
        return count_tokens(text)
    return text.count(" ") + 1 + (_more_tokens(text) if unspaced else 0)


def has_unspaced(text: str) -> bool:
    """Whether the text has letters of scripts that put no spaces between words."""
    for codes in map(code_points, pieces(text)):
        kinds = kinds_of(codes[codes >= _FIRST_UNSPACED])  # of few characters, in most scripts
        if are(kinds, Kind.IN_TWOS).any() or are(kinds, Kind.IN_FOURS).any():
            return True
    return False


def _more_tokens(text: str) -> int:
    """The number of words beyond the first in all runs of letters of scripts without spaces."""
    if not _MAY_BE_UNSPACED.search(text):
        return 0
    # Splitting at spaces has already counted each run as one word.
    found = _UNSPACED.findall(_BETWEEN.sub("", text))
    words = sum((len(twos) + 1) // 2 + (len(fours) + 3) // 4 - 1 for twos, fours in found)
    return words + len(_SEPARATORS.findall(text))


def code_points(text: str) -> NDArray[np.uint32]:
    """[C] the code points of the characters of a text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def kinds_of(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """[C] the `Kind` of each character, given the code points [C]."""
    kinds = _kinds.take(codes)  # in half the time of an index
    if not kinds.all():
        # A set, because the first call of `np.unique` imports all of numpy's masked arrays.
        for code in set(codes[are(kinds, Kind.UNKNOWN)].tolist()):
            _kinds[code] = _kind(chr(code))
        kinds = _kinds.take(codes)
    return kinds


def are(kinds: NDArray[np.uint8], kind: Kind) -> NDArray[np.bool_]:
    """[C] whether each of the `kinds` [C] is this one."""
    # A member of an enumeration would be compared in 64 bits, which takes five times as long.
    same: NDArray[np.bool_] = kinds == np.uint8(kind)
    return same


def words_by_line(kinds: NDArray[np.uint8], starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """([L] the number of words that begin in each line of a text, the number of joiners inside words), given the
    `kinds` [C] of its characters.

    `starts` [L] are the offsets of the lines. Numbers and punctuation are not counted as words.
    """
    letter = are(kinds, Kind.LETTER)
    before = np.append(False, letter[:-1])
    joined = np.append(False, are(kinds[:-1], Kind.JOINER) & before[:-1])
    inside = letter & joined
    words = _by_line(letter & ~before & ~joined, starts)
    for kind, letters in ((Kind.IN_TWOS, 2), (Kind.IN_FOURS, 4)):
        if (of_kind := are(kinds, kind)).any():
            words += -(-_by_line(of_kind, starts) // letters)
    return words, int(np.count_nonzero(inside))


def _by_line(marked: NDArray[np.bool_], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """[L] the number of `marked` [C] characters in each line."""
    # The few places are cheaper to look up than all characters are to add up.
    return np.diff(np.searchsorted(np.flatnonzero(marked), np.append(starts, len(marked))))


def _kind(character: str) -> Kind:
    if character in _JOINERS:
        return Kind.JOINER
    if unspaced := _UNSPACED.match(character):
        return Kind.IN_TWOS if unspaced.group(1) else Kind.IN_FOURS
    kind = Kind.LETTER if character in JOINERS else _OF_CATEGORY.get(unicodedata.category(character)[0], Kind.OTHER)
    return Kind.OTHER if kind == Kind.MARK and _OF_A_SCRIPT.match(character) else kind
