"""Sentences: sentencex per paragraph, then rules of the language that join what it cut wrongly.

A stop after a number, a Roman numeral or an abbreviation ends no sentence in Hungarian ("2010. augusztus",
"II. Lipót", "kb. száz"), and no sentence begins with a small letter; sentencex cuts there. A language gets rules by
an entry in `JOINING`; without one its sentences are sentencex's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import sentencex

_OPENING = "(„\"»«“'[–- "
_ORDINAL = re.compile(r"\d+(?:[–/-]\d+)?\.")
_ROMAN = re.compile(r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})\.")


@dataclass(frozen=True)
class Joining:
    """When two pieces that sentencex separated are one sentence after all."""

    months: tuple[str, ...]
    """Beginnings of month names, which follow the stop of a year."""
    abbreviations: frozenset[str]
    """Lower-case words, without their stop, that also stand before capitals."""

    def joins(self, left: str, right: str) -> bool:
        """Whether the end of `left` is no end of a sentence before `right`."""
        right = right.lstrip(_OPENING)
        if not right or right[0].islower():
            return True
        last = left[left.rfind(" ") + 1 :].lstrip(_OPENING)
        if _ORDINAL.fullmatch(last):
            return right[0].isdigit() or right.lower().startswith(self.months)
        return _ROMAN.fullmatch(last) is not None or last.lower().removesuffix(".") in self.abbreviations


JOINING: dict[str, Joining] = {
    "hu": Joining(
        months=("jan", "feb", "már", "ápr", "máj", "jún", "júl", "aug", "szep", "okt", "nov", "dec"),
        abbreviations=frozenset({
            "bp", "br", "dr", "gr", "i", "i.e", "i.sz", "id", "ifj", "ill", "kb", "kr", "ld", "özv", "pl", "prof", "st",
            "sz", "szt", "u", "ún", "vö", "wz",
        }),
    )
}  # fmt: skip


def splitter(language: str) -> Callable[[str], list[str]]:
    """The function that splits a paragraph of this language into sentences: none empty, single spaces, no newline."""
    base, joining = language.split("-")[0], JOINING.get(language)

    def split(paragraph: str) -> list[str]:
        pieces = filter(None, map(str.strip, sentencex.segment(base, " ".join(paragraph.split()))))
        if joining is None:
            return list(pieces)
        sentences: list[list[str]] = []
        for piece in pieces:
            if sentences and joining.joins(sentences[-1][-1], piece):
                sentences[-1].append(piece)
            else:
                sentences.append([piece])
        return list(map(" ".join, sentences))

    return split
