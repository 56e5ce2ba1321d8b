"""Hungarian noun endings: vowel harmony, linking vowels, assimilation of -val/-vel, and the article a/az.

The rules are those of school grammars; stems that do not follow them are listed in `irregular.hu.txt`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_VOWELS = "aáeéiíoóöőuúüű"
_DIGRAPHS = ("cs", "gy", "ly", "ny", "sz", "ty", "zs")
_BACK = ("híd", "nyíl", "zsír", "gyík")
"""Words that take back endings although i or í is their only vowel, alone or as the last part of a compound."""
_FRONT = ("tér", "szén", "lé")
"""Last parts of compounds that keep their front endings after a first part with back vowels."""

_PAIRS = {
    "ban": ("ban", "ben"), "ba": ("ba", "be"), "bol": ("ból", "ből"),
    "ra": ("ra", "re"), "rol": ("ról", "ről"),
    "nal": ("nál", "nél"), "tol": ("tól", "től"), "nak": ("nak", "nek"),
}  # fmt: skip

PLACES = {
    "loc": {"ban": "ban", "n": "n"},
    "lat": {"ban": "ba", "n": "ra"},
    "abl": {"ban": "bol", "n": "rol"},
}
"""Endings for place, direction and origin, for places one is in ("ban") and places one is on ("n")."""


@cache
def irregular() -> dict[str, tuple[str, str, str]]:
    """Return (plural, accusative, superessive form "on something") of each irregular stem, by its nominative."""
    lines = (Path(__file__).parent / "irregular.hu.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {row[0]: (row[1], row[2], row[3] if len(row) > 3 else "") for row in rows}


@cache
def harmony(word: str) -> str:
    """Return the ending class of a word: "back", "front" or "round" (front with -höz and -ön)."""
    if word.endswith(_BACK):
        return "back"
    if word.endswith(_FRONT):
        return "front"
    vowels = [letter for letter in word.lower() if letter in _VOWELS]
    if vowels and vowels[-1] in "öőüű":
        return "round"
    deciding = [v for v in vowels if v not in "iíé"]
    if not deciding or deciding[-1] in "eöőüű" or vowels[-1] == "e":
        return "front"
    return "back"


def suffixed(word: str, suffix: str) -> str:
    """Return `word` with a case ending, named by its back-vowel form without accents; "k" is the plural.

    Endings: k t ban ba bol n ra rol nal tol hoz nak val ert ig kent, and each after "k" (`kt`, `kban`).
    In a phrase of several words, only the last is inflected ("mákos tészta" becomes "mákos tésztát").
    """
    first, space, last = word.rpartition(" ")
    if not suffix:
        return word
    if suffix == "k":
        return first + space + _plural(last)
    if suffix.startswith("k") and suffix != "kent":
        return first + space + _cased(_plural(last), suffix[1:], harmony(last), plural=True)
    return first + space + _cased(last, suffix, harmony(last), plural=False)


def article(following: str) -> str:
    """Return the definite article before a word: "az" before a vowel, else "a"."""
    return "az" if following[:1].lower() in _VOWELS else "a"


def _cased(word: str, suffix: str, kind: str, *, plural: bool) -> str:
    exception = None if plural else irregular().get(word)
    back = kind == "back"
    if suffix == "t":
        return exception[1] if exception else _accusative(word, kind, plural=plural)
    if suffix == "n":
        if exception and exception[2]:
            return exception[2]
        link = "" if word[-1] in _VOWELS else {"back": "o", "front": "e", "round": "ö"}[kind]
        return _stem(word) + link + "n"
    if suffix == "hoz":
        return _stem(word) + {"back": "hoz", "front": "hez", "round": "höz"}[kind]
    if suffix == "val":
        return _with(word, "al" if back else "el")
    if suffix in ("ert", "ig"):
        return _stem(word) + {"ert": "ért", "ig": "ig"}[suffix]
    if suffix == "kent":
        return word + "ként"
    return _stem(word) + _PAIRS[suffix][0 if back else 1]


def _stem(word: str) -> str:
    """Lengthen a final a or e, as before an ending: róka, rókát; körte, körtét."""
    return word[:-1] + {"a": "á", "e": "é"}[word[-1]] if word[-1] in "ae" else word


def _plural(word: str) -> str:
    if word in irregular():
        return irregular()[word][0]
    if word[-1] in _VOWELS:
        return _stem(word) + "k"
    return word + {"back": "o", "front": "e", "round": "ö"}[harmony(word)] + "k"


def _accusative(word: str, kind: str, *, plural: bool) -> str:
    if plural:
        return word + ("at" if kind == "back" else "et")
    if word[-1] in _VOWELS or re.search(f"[{_VOWELS}](l|r|n|ny|s|sz|z|zs|j|ly)$", word):
        return _stem(word) + "t"
    return word + {"back": "o", "front": "e", "round": "ö"}[kind] + "t"


def _with(word: str, ending: str) -> str:
    """Add -val/-vel: v assimilates to a final consonant (kéz, kézzel; ács, áccsal), and stays after a vowel."""
    if word[-1] in _VOWELS:
        return _stem(word) + "v" + ending
    if len(word) > 2 and (word[-1] == word[-2] or (word[-2:] in _DIGRAPHS and word[-3] == word[-2])):
        return word + ending
    last = word[-2:] if word.endswith(_DIGRAPHS) else word[-1]
    return word[: -len(last)] + last[0] + last + ending
