"""The rules of each language by which two pieces that sentencex separated are one sentence (`sentences.toml`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

from bertwright.corpus.characters import is_small

OPENING = "(„\"»«“'[—–- "
STOPS = (".", "\u2024")  # the second is the Armenian semicolon
ORDINAL = re.compile(r"\d+(?:[–/-]\d+)?\.")
_ELIDED = re.compile(r"[’'][a-z] [^\W\d_a-z]")
_ROMAN = re.compile(r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})\.")


# Not a `Section`: reading its fields takes five times as long, and every cut reads many of them.
@dataclass(frozen=True, slots=True)
class JoinRules:
    """The rules by which two pieces that sentencex separated are one sentence; `sentences.toml` explains the fields."""

    small: bool = False
    stops: bool = True
    names: bool = False
    digits: bool = False
    elided: bool = False
    ends: re.Pattern[str] | None = None
    initials: bool | None = None
    roman: bool = False
    ordinals: bool = False
    before: tuple[str, ...] = ()
    after: frozenset[str] = frozenset()
    eras: tuple[str, ...] = ()
    abbreviations: frozenset[str] = frozenset()

    def joins(self, left: str, right: str) -> bool:
        """Whether `right` continues the sentence of `left`."""
        opens = self.small or (self.elided and bool(_ELIDED.match(right)))
        right = right.lstrip(OPENING)
        if not right or (not opens and is_small(right[0])):
            return True
        if not left.endswith(STOPS):
            return False
        rest, _, last = left.rpartition(" ")
        last = last.lstrip(OPENING)
        if ORDINAL.fullmatch(last):
            return self._is_ordinal(rest, last, right)
        initial = len(last) == 2 and last[0].isalpha() and not is_small(last[0])
        # Of languages that it does not know, sentencex knows the initials from A to Z.
        other = self.initials is None and last[0].isupper() and not last[0].isascii()
        if initial and (self.initials or other):
            return True
        if self.eras and len(last) <= 3 and is_small(last[0]) and right.startswith(self.eras):
            return True
        return (self.roman and bool(_ROMAN.fullmatch(last))) or last[:-1].lower() in self.abbreviations

    def _is_ordinal(self, rest: str, number: str, right: str) -> bool:
        if len(number) <= 4 and (self.ordinals or rest.rpartition(" ")[2].lower() in self.after):
            return True
        return bool(self.before) and (right[0].isdigit() or right.lower().startswith(self.before))


@cache
def join_rules() -> dict[str, JoinRules]:
    """The rules of each language that has any, by its code without a variant."""
    text = resources.files(__package__).joinpath("sentences.toml").read_text(encoding="utf-8")
    return {language: _rules_of(**entry) for language, entry in tomllib.loads(text).items()}


def _rules_of(
    before: Iterable[str] = (),
    after: Iterable[str] = (),
    eras: Iterable[str] = (),
    abbreviations: Iterable[str] = (),
    ends: str = "",
    **rules: bool,
) -> JoinRules:
    return JoinRules(
        **rules,
        before=tuple(before),
        after=frozenset(after),
        eras=tuple(eras),
        abbreviations=frozenset(abbreviations),
        ends=re.compile(ends) if ends else None,
    )
