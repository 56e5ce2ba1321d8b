"""Sentences: sentencex per paragraph, then rules of the language that join what it cut wrongly.

A stop inside a token ("ΠΑ.ΣΟ.Κ.", "১.৫") ends no sentence in any language. After an ordinal number, a Roman numeral, an
initial or an abbreviation, and before a small letter, it depends on the language: `sentences.toml` says how. A language
without an entry there keeps sentencex's sentences.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

import sentencex

_OPENING = "(„\"»«“'[–- "
_STOPS = (".", "\u2024")  # the second is the Armenian semicolon
_ORDINAL = re.compile(r"\d+(?:[–/-]\d+)?\.")
_ROMAN = re.compile(r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})\.")
_WINDOW = 4096
"""Characters given to sentencex at once, whose time is quadratic where quotation marks stay open."""


@dataclass(frozen=True)
class Joining:
    """When two pieces that sentencex separated are one sentence after all; `sentences.toml` explains the fields."""

    small: bool = False
    initials: bool = False
    roman: bool = False
    ordinals: bool = False
    before: tuple[str, ...] = ()
    after: frozenset[str] = frozenset()
    abbreviations: frozenset[str] = frozenset()

    def joins(self, left: str, right: str) -> bool:
        """Whether the end of `left` is no end of a sentence before `right`."""
        right = right.lstrip(_OPENING)
        if not right or (right[0].islower() and not self.small):
            return True
        rest, _, last = left.rpartition(" ")
        last = last.lstrip(_OPENING)
        if _ORDINAL.fullmatch(last):
            return self._is_ordinal(rest, last, right)
        if (self.roman and _ROMAN.fullmatch(last)) or (self.initials and len(last) == 2 and last[0].isupper()):
            return last.endswith(".")
        return last.endswith(_STOPS) and last[:-1].lower() in self.abbreviations

    def _is_ordinal(self, rest: str, number: str, right: str) -> bool:
        if self.ordinals and len(number) <= 4:
            return True
        if self.after and rest.rpartition(" ")[2].lower() in self.after:
            return True
        return bool(self.before) and (right[0].isdigit() or right.lower().startswith(self.before))


def splitter(language: str) -> Callable[[str], list[str]]:
    """The function that splits a paragraph of this language into sentences: none empty, single spaces, no newline.

    Its time is linear in the paragraph; a sentence of more than 4,096 characters may be cut at a space.
    """
    base = language.split("-")[0]
    joining = _table().get(base)

    def split(paragraph: str) -> list[str]:
        sentences: list[list[str]] = []
        for piece in _pieces(base, " ".join(paragraph.split())):
            if sentences and _joins(joining, sentences[-1][-1], piece):
                sentences[-1].append(piece)
            else:
                sentences.append([piece])
        return [sentence for pieces in sentences if (sentence := "".join(pieces).strip())]

    return split


def _joins(joining: Joining | None, left: str, right: str) -> bool:
    if left.endswith(_STOPS):  # and no space: inside a token, unless the space was forgotten
        inside = right[0].islower() or right[0].isdigit()
        if inside or (right[0].isalpha() and left.rpartition(" ")[2].isupper()):
            return True
    return joining is not None and joining.joins(left.rstrip(), right)


def _pieces(language: str, text: str) -> Iterator[str]:
    """The text as sentencex cuts it, each piece with the spaces after it."""
    start = 0
    while len(text) - start > _WINDOW:
        stop = text.rfind(" ", start, start + _WINDOW) + 1 or start + _WINDOW
        *whole, last = sentencex.segment(language, text[start:stop])
        yield from whole
        if len(last) > _WINDOW // 2:  # else it is read again, with what follows it
            yield last
            last = ""
        start = stop - len(last)
    yield from sentencex.segment(language, text[start:])


@cache
def _table() -> dict[str, Joining]:
    text = resources.files(__package__).joinpath("sentences.toml").read_text(encoding="utf-8")
    return {
        language: Joining(**{
            key: value if isinstance(value, bool) else tuple(value) if key == "before" else frozenset(value)
            for key, value in entry.items()
        })
        for language, entry in tomllib.loads(text).items()
    }  # fmt: skip
