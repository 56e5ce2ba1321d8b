"""The rules by which two pieces that sentencex separated are one sentence, as `sentences.toml` has them by language."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import ascii_uppercase
from typing import Any

import sentencex

from bertwright.corpus.characters import bare, is_small
from bertwright.corpus.hidden_marks import CLOSES, OPENS
from bertwright.corpus.wikis import wikis

OPENING = f"{OPENS}([—–-„\"»«“' "
STOPS = (".", "\u2024")  # the second is the Armenian semicolon
_ORDINAL = re.compile(r"\d+(?:[–/-]\d+)?\.")
_ELIDED = re.compile(rf"[’'{OPENS}][a-z] [^\W\d_a-z]")
_ROMAN = re.compile(r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})\.")
_ONE_LETTER = re.compile(r"[^\W\d_](?![\w.])")
"""A word of one letter, which is no initial and no surname after one: "A", "В"."""


_LETTER, _VOWEL = r"[^\W\d_]", "[aeiouyäöüáéíóúýěů]"
# Where sentencex takes every stop before a digit for an ordinal's, a sentence ends after a word of five letters or more
# with a vowel among the last three: abbreviations of this form are rare.
_BEFORE_DIGIT = re.compile(
    rf"\. (?=\d)(?<={_LETTER}{{5}}\. )(?:(?<={_VOWEL}\. )|(?<={_VOWEL}{_LETTER}\. )|(?<={_VOWEL}{_LETTER}{{2}}\. ))"
)


# Not a `Section`: reading its fields takes five times as long, and every cut reads many of them.
@dataclass(frozen=True, slots=True)
class JoinRules:
    """The rules of one language; `sentences.toml` explains the fields."""

    splits_as: str
    unknown_initials: frozenset[str]
    """Capitals from A to Z after which sentencex ends a sentence, as in a language whose initials it does not know."""
    small: bool = False
    stops: bool = True
    names: bool = False
    elided: bool = False
    ends: re.Pattern[str] | None = None
    initials: bool | None = None
    roman: bool = False
    ordinals: bool = False
    before: tuple[str, ...] = ()
    after: frozenset[str] = frozenset()
    eras: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    abbreviations: frozenset[str] = frozenset()
    numbered: frozenset[str] = frozenset()

    def joins(self, left: str, right: str) -> bool:
        """Whether `right`, which has a word, continues the sentence of `left`, which has no space after it."""
        first, elided = right[0], False
        if not first.isalnum():
            elided = self.elided and _ELIDED.match(right) is not None
            right = right.lstrip(OPENING)
            first = right[0]
        if first.islower() and not (self.small and left[-1] != CLOSES) and not elided and is_small(first):
            return True
        if left[-1] not in STOPS:
            return bool(self.said) and left[-1] == CLOSES and right.startswith(self.said)
        word = left[left.rfind(" ") + 1 :]
        second = word[0] == "-"  # "-P." of "J.-P. Sartre"; the era of "av. J.-C." ends many sentences
        if not word[0].isalnum():
            word = word.lstrip(OPENING)
        if word[0].isdigit() and _ORDINAL.fullmatch(word):
            return word == left or self._is_ordinal(left, word, right)
        if len(word) <= 6:
            if second:
                return len(left) == 3 and word[0].isupper() and word[0] != "C"
            # Only a mark of the letter is no letter in the second place ("कि.").
            short = len(word) == 2 or (len(word) > 2 and not word[1].isalnum() and len(bare(word)) == 2)
            if short and word[0].isalpha() and self._is_initial(word[0], right):
                return True
            if self.eras and len(word) <= 3 and is_small(word[0]) and right.startswith(self.eras):
                return True
        if self.roman and _ROMAN.fullmatch(word):
            return True
        word = word[:-1].lower()
        return word in self.abbreviations or (first.isdigit() and word in self.numbered)

    def _is_initial(self, letter: str, right: str) -> bool:
        if is_small(letter) or self.initials is False:
            return False
        if self.initials or (letter.isupper() and not letter.isascii()):
            return True
        return letter in self.unknown_initials and not _ONE_LETTER.match(right)

    def _is_ordinal(self, left: str, number: str, right: str) -> bool:
        if len(number) <= 4 and (self.ordinals or (self.after and left.split(" ")[-2:-1][0].lower() in self.after)):
            return True
        return bool(self.before) and (right[0].isdigit() or right.lower().startswith(self.before))


@cache
def join_rules(language: str) -> JoinRules:
    """The rules of the language with this wiki code; those of a code without an entry are its base's (pt-br: pt)."""
    code = language if language in wikis() else language.split("-")[0]
    table = _table()
    entry = dict(table.get(code) or table[code.split("-")[0]])
    splits_as = entry.pop("splits_as", code)
    unknown = {x for x in ascii_uppercase if len(sentencex.segment(splits_as, f"Xaa xaa {x}. Xaaa xaa.")) > 1}
    ends = re.compile(entry.pop("ends")) if "ends" in entry else None
    if ends is None and len(sentencex.segment(splits_as, "Xaa xaaaa. 1990 xaa.")) == 1:
        ends = _BEFORE_DIGIT
    sets: dict[str, Any] = {key: frozenset(entry.pop(key, ())) for key in ("after", "abbreviations", "numbered")}
    beginnings: dict[str, Any] = {key: tuple(entry.pop(key, ())) for key in ("before", "eras", "said")}
    return JoinRules(splits_as, frozenset(unknown), ends=ends, **sets, **beginnings, **entry)


@cache
def _table() -> dict[str, dict[str, Any]]:
    """The entry of each code that has one, which holds what the entry of all languages says."""
    text = resources.files(__package__).joinpath("sentences.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text)
    general = entries.pop("any")
    table = defaultdict[str, dict[str, Any]](lambda: general)
    for code, entry in entries.items():
        for one in (code, *entry.pop("also", ())):
            table[one] = general | entry
    return table
