"""Sentence splitting: sentencex per paragraph, then rules of the language that undo its wrong cuts.

In any language a full stop inside a token ("ΠΑ.ΣΟ.Κ.", "১.৫") or after an initial does not end a sentence, a number
("3.") or punctuation alone is not a sentence, no sentence begins with a comma, a closing bracket or, except in a
paragraph without capitals, a small letter, and sentences end in quotations too (`hidden_marks`). `sentences.toml` lists
the languages that differ, and how each treats ordinal numbers, Roman numerals, initials and abbreviations
(`join_rules`). Full-width stops have separate rules (`fullwidth`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import sentencex

from bertwright.corpus.characters import bare, is_small, is_syllable
from bertwright.corpus.hidden_marks import CLOSES, OPENS, hide_marks
from bertwright.corpus.join_rules import OPENING, STOPS, JoinRules, join_rules

_HYPHENS = ("-", "\u2010", "\u2011")
_IN_NAME = re.compile(r"[A-Za-z\d][!?]+ *\Z")
_NAME_GOES_ON = re.compile("[A-Za-z\u30a1-\u30ff]")
_WORD = re.compile(r"\w")
_GOES_ON = frozenset(",:;/)]},،؛、，；：፣፤፥")
_COMMAS = "၊၏᭞꧈"
"""Signs of Burmese, Balinese and Javanese that end parts of sentences."""
_TAILS = f")]}}{CLOSES}:;"
_TAIL = re.compile(rf"(?:[)\]}}{CLOSES}]+|[:;]-?[)(]+)(?: |\Z)")
"""What ends the sentence before the stop and a space: closing marks, and a smiley."""
# Characters passed to sentencex at once; its time is quadratic where quotation marks stay open.
_WINDOW = 4096


def splitter(language: str) -> Callable[[str], list[str]]:
    """Return the function that splits a paragraph of this language into sentences.

    No sentence is empty; they have single spaces and no newline. The time is linear in the length of the paragraph; a
    sentence of more than 4,096 characters may be cut at a space.
    """
    rules = join_rules(language)
    without_capitals = replace(rules, small=True)

    def split(paragraph: str) -> list[str]:
        single = paragraph.isprintable() and "  " not in paragraph  # then its only white space is single ' '
        text = paragraph.strip() if single else " ".join(paragraph.split())
        if not text:
            return []
        pieces = _pieces(rules.splits_as, hide_marks(text))
        cuts = _cuts(without_capitals if text.islower() else rules, pieces) if len(pieces) > 1 else []
        if rules.ends:
            cuts = sorted({*cuts, *(stop.end() for stop in rules.ends.finditer(text))})
        if not text.isascii() and _may_be_full_width(text):
            cuts = _full_width_cuts(text, cuts)
        if not cuts:
            return [text]
        parts = pairwise([0, *cuts, len(text)])
        return [sentence for start, stop in parts if (sentence := text[start:stop].strip())]

    return split


def _cuts(rules: JoinRules, pieces: list[str]) -> list[int]:
    """The ends of the pieces that are not joined with the next one, except the last."""
    cuts, end, begun, left = list[int](), 0, False, pieces[0]
    for right in pieces[1:]:
        if right[0] in _TAILS and (tail := _TAIL.match(right)):
            left, right = left + tail[0], right[tail.end() :]
            if not right:
                continue
        elif left[-1] == OPENS:
            left, right = left[:-1], OPENS + right
        end += len(left)
        # Without a word it is punctuation before a sentence.
        begun = begun or left[0].isalnum() or _WORD.search(left) is not None
        if begun and not _joins(rules, left, right):
            cuts.append(end)
            begun = False
        left = right
    return cuts


def _may_be_full_width(text: str) -> bool:
    """Whether the text has characters from U+3000 to U+3FFF or from U+F000 on, as all full-width signs are."""
    # Only these begin with such a byte in UTF-8. A class of a regular expression takes four times as long.
    data = text.encode("utf-8", "surrogatepass")
    return b"\xe3" in data or b"\xef" in data


def _full_width_cuts(text: str, cuts: list[int]) -> list[int]:
    # Imported only where there may be such signs: compiling its patterns takes milliseconds.
    from bertwright.corpus.fullwidth import is_full_width, set_ends

    return set_ends(text, cuts) if is_full_width(text) else cuts


def _joins(rules: JoinRules, left: str, right: str) -> bool:
    first = right[0]
    if not first.isalnum() and (first in _GOES_ON or not _WORD.search(right)):
        return True
    last = left[-1]
    if last == " ":
        left = left.strip()
        last = left[-1]
    elif last in STOPS:  # with no space after it: inside a token, unless the author forgot the space
        # "J.-C." and "2.5" are one token each.
        if is_small(first) or first.isdigit() or (first in _HYPHENS and right[1:2].isalpha()):
            return True
        if first.isalpha() and _is_part_of_token(left.rpartition(" ")[2]):
            return True
    if last != ".":
        if last in _COMMAS:
            return True
        if rules.names and last in "!?" and (_IN_NAME.search(left) or (first != " " and _NAME_GOES_ON.match(right))):
            return True
    elif not rules.stops and _ends_own_word(left):
        return True
    return rules.joins(left, right)


def _ends_own_word(left: str) -> bool:
    """Whether the stop at the end of `left` follows a letter that is not Latin."""
    letter = bare(left[left.rfind(" ") + 1 : -1])[-1:]
    return letter.isalpha() and not letter.isascii()


def _is_part_of_token(start: str) -> bool:
    """Whether the text from a space to a stop, directly before a letter, is the start of a token ("ΠΑ.ΣΟ.", "pr.")."""
    start = start.lstrip(OPENING)[:-1]
    # A longer word is more often the end of a sentence whose author forgot the space.
    short = (len(start) <= 3 and start.isalpha()) or is_syllable(start)
    return start.isupper() or short or "." in start.rstrip(".")


def _pieces(language: str, text: str) -> list[str]:
    """The pieces into which sentencex cuts the text, each with the spaces after it."""
    pieces: list[str] = []
    start = 0
    while len(text) - start > _WINDOW:
        # No window is shorter than half of `_WINDOW`, so each one ends a piece and the next one begins later.
        stop = text.rfind(" ", start + _WINDOW // 2, start + _WINDOW) + 1 or start + _WINDOW
        *whole, last = sentencex.segment(language, text[start:stop])
        pieces += whole
        if len(last) > _WINDOW // 2:  # else it is segmented again together with the following text
            pieces.append(last)
            last = ""
        start = stop - len(last)
    pieces += sentencex.segment(language, text[start:])
    return pieces
