"""Sentence splitting: sentencex per paragraph, then rules of the language that undo its wrong cuts.

In any language a full stop inside a token ("ΠΑ.ΣΟ.Κ.", "১.৫") does not end a sentence, a number ("3.") or punctuation
alone is not a sentence, no sentence begins with a lower-case letter, and a quotation mark after a space belongs to the
text that follows it. `sentences.toml` lists the languages that differ, and how each treats ordinal numbers, Roman
numerals, initials and abbreviations. Full-width stops have separate rules (`fullwidth`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise

import sentencex

from bertwright.corpus.characters import is_small

_OPENING = "(„\"»«“'[—–- "
_STOPS = (".", "\u2024")  # the second is the Armenian semicolon
_ORDINAL = re.compile(r"\d+(?:[–/-]\d+)?\.")
_ROMAN = re.compile(r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})\.")
_OPENED = (' "', " '", " ”", " ’", " »")
_LETTER, _VOWEL = r"[^\W\d_]", "[aeiouyäöüáéíóúýěů]"
# After a word of five letters or more with a vowel among the last three: abbreviations of this form are rare.
_BEFORE_DIGIT = re.compile(
    "|".join(f"(?<={_LETTER}{{{before}}}){_VOWEL}{_LETTER}{{{4 - before}}}\\. (?=\\d)" for before in (4, 3, 2))
)
_IN_NAME = re.compile(r"[A-Za-z\d][!?]+ *\Z")
_NAME_GOES_ON = re.compile("[A-Za-z\u30a1-\u30ff]")
_OWN_STOP = re.compile(r"(?![A-Za-z])[^\W\d_][\u0300-\u036f\u0e31-\u0e4e]*\.\Z")
"""A stop after a letter that is not Latin."""
# Characters passed to sentencex at once; its time is quadratic where quotation marks stay open.
_WINDOW = 4096


# Not a `Section`: reading its fields takes five times as long, and every cut reads many of them.
@dataclass(frozen=True, slots=True)
class Joining:
    """The rules by which two pieces that sentencex separated are one sentence; `sentences.toml` explains the fields."""

    small: bool = False
    stops: bool = True
    names: bool = False
    digits: bool = False
    initials: bool = False
    roman: bool = False
    ordinals: bool = False
    before: tuple[str, ...] = ()
    after: frozenset[str] = frozenset()
    abbreviations: frozenset[str] = frozenset()

    def joins(self, left: str, right: str) -> bool:
        """Whether `right` continues the sentence of `left`."""
        right = right.lstrip(_OPENING)
        if not right or (not self.small and is_small(right[0])):
            return True
        if not left.endswith(_STOPS):
            return False
        rest, _, last = left.rpartition(" ")
        last = last.lstrip(_OPENING)
        if _ORDINAL.fullmatch(last):
            return self._is_ordinal(rest, last, right)
        initial = self.initials and len(last) == 2 and last[0].isupper() and last[1] == "."
        return initial or (self.roman and bool(_ROMAN.fullmatch(last))) or last[:-1].lower() in self.abbreviations

    def _is_ordinal(self, rest: str, number: str, right: str) -> bool:
        if len(number) <= 4 and (self.ordinals or rest.rpartition(" ")[2].lower() in self.after):
            return True
        return bool(self.before) and (right[0].isdigit() or right.lower().startswith(self.before))


def splitter(language: str) -> Callable[[str], list[str]]:
    """Return the function that splits a paragraph of this language into sentences.

    No sentence is empty; they have single spaces and no newline. The time is linear in the length of the paragraph; a
    sentence of more than 4,096 characters may be cut at a space.
    """
    base = language.split("-")[0]
    joining = _table().get(base, Joining())

    def split(paragraph: str) -> list[str]:
        single = paragraph.isprintable() and "  " not in paragraph  # then its only white space is single ' '
        text = paragraph.strip() if single else " ".join(paragraph.split())
        if not text:
            return []
        pieces = _pieces(base, text)
        cuts = _cuts(joining, pieces) if len(pieces) > 1 else []
        if joining.digits:
            cuts = sorted({*cuts, *(stop.end() for stop in _BEFORE_DIGIT.finditer(text))})
        if _may_be_full_width(text):
            cuts = _full_width_cuts(text, cuts)
        if not cuts:
            return [text]
        sentences = [text[start:stop].strip() for start, stop in pairwise([0, *cuts, len(text)])]
        return [sentence for sentence in sentences if sentence]

    return split


def _cuts(joining: Joining, pieces: list[str]) -> list[int]:
    """The ends of the pieces that are not joined with the next one, except the last."""
    _move_opening_quotes(pieces)
    cuts, end = list[int](), 0
    for left, right in pairwise(pieces):
        end += len(left)
        if not _joins(joining, left, right):
            cuts.append(end)
    return cuts


def _move_opening_quotes(pieces: list[str]) -> None:
    """Move a quotation mark after a space at the end of a piece to the next piece, which it opens."""
    for i in range(len(pieces) - 1):
        if pieces[i].endswith(_OPENED):
            pieces[i + 1] = pieces[i][-1] + pieces[i + 1]
            pieces[i] = pieces[i][:-1]


def _may_be_full_width(text: str) -> bool:
    """Whether the text has characters from U+3000 to U+3FFF or from U+F000 on, as all full-width signs are."""
    # Only these begin with such a byte in UTF-8. A class of a regular expression takes four times as long.
    data = text.encode("utf-8", "surrogatepass")
    return b"\xe3" in data or b"\xef" in data


def _full_width_cuts(text: str, cuts: list[int]) -> list[int]:
    # Imported only where there may be such signs: compiling its patterns takes milliseconds.
    from bertwright.corpus.fullwidth import is_full_width, set_ends

    return set_ends(text, cuts) if is_full_width(text) else cuts


def _joins(joining: Joining, left: str, right: str) -> bool:
    if left.endswith(_STOPS):  # with no space after it: inside a token, unless the author forgot the space
        inside = is_small(right[0]) or right[0].isdigit()
        # ΠΑ.ΣΟ.Κ. and 2.5 are one token each.
        if inside or (right[0].isalpha() and left.rpartition(" ")[2].isupper()):
            return True
    end = left.rstrip()
    # A pattern anchored at the end is tried at every position before it, so check the last character first.
    marked = joining.names and end.endswith(("!", "?"))
    if marked and (_IN_NAME.search(left) or (end == left and _NAME_GOES_ON.match(right))):
        return True
    left = end.lstrip()
    if not joining.stops and left.endswith(".") and _OWN_STOP.search(left):
        return True
    # Of sentencex's wrong cuts in Hungarian 89 % follow an ordinal number: "2010. | augusztus".
    return _ORDINAL.fullmatch(left) is not None or joining.joins(left, right)


def _pieces(language: str, text: str) -> list[str]:
    """The pieces into which sentencex cuts the text, each with the spaces after it."""
    pieces: list[str] = []
    start = 0
    while len(text) - start > _WINDOW:
        stop = text.rfind(" ", start, start + _WINDOW) + 1 or start + _WINDOW
        *whole, last = sentencex.segment(language, text[start:stop])
        pieces += whole
        if len(last) > _WINDOW // 2:  # else it is segmented again together with the following text
            pieces.append(last)
            last = ""
        start = stop - len(last)
    pieces += sentencex.segment(language, text[start:])
    return pieces


@cache
def _table() -> dict[str, Joining]:
    text = resources.files(__package__).joinpath("sentences.toml").read_text(encoding="utf-8")
    return {language: _joining(**entry) for language, entry in tomllib.loads(text).items()}


def _joining(
    before: Iterable[str] = (), after: Iterable[str] = (), abbreviations: Iterable[str] = (), **rules: bool
) -> Joining:
    return Joining(**rules, before=tuple(before), after=frozenset(after), abbreviations=frozenset(abbreviations))
