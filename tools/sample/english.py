"""English noun forms: the plural, the possessive and the article a/an."""

from __future__ import annotations

import re

_PLURALS = {
    "mouse": "mice", "goose": "geese", "wolf": "wolves", "sheep": "sheep", "deer": "deer", "ox": "oxen",
    "knife": "knives", "loaf": "loaves", "leaf": "leaves", "calf": "calves", "trout": "trout", "pike": "pike",
    "perch": "perch", "carp": "carp", "salmon": "salmon", "bream": "bream", "grayling": "grayling",
    "scarf": "scarves", "bookshelf": "bookshelves", "foot": "feet", "child": "children", "thief": "thieves",
    "roof": "roofs", "stove": "stoves", "potato": "potatoes", "tomato": "tomatoes",
}  # fmt: skip
_SOUNDS_LIKE_VOWEL = ("hour", "honest")
_SOUNDS_LIKE_CONSONANT = ("useful", "unicorn", "one", "ewe")


def suffixed(word: str, suffix: str) -> str:
    """Return `word` unchanged (""), in the plural ("s") or in the possessive ("of")."""
    if suffix == "s":
        return _plural(word)
    if suffix == "of":
        return word + ("'" if word.endswith("s") else "'s")
    return word


def article(following: str) -> str:
    """Return the indefinite article before a word, by its first sound."""
    word = following.lower()
    if word.startswith(_SOUNDS_LIKE_CONSONANT):
        return "a"
    return "an" if word.startswith(_SOUNDS_LIKE_VOWEL) or word[:1] in "aeiou" else "a"


def _plural(word: str) -> str:
    """Return the plural of the last word, or of the one before "of"; words that end in "man" take -men."""
    head, of, rest = word.partition(" of ")
    if of:
        return _plural(head) + of + rest
    first, space, last = word.rpartition(" ")
    if last in _PLURALS:
        return first + space + _PLURALS[last]
    if last.endswith("man"):
        return first + space + last[:-3] + "men"
    if re.search("[^aeiou]y$", last):
        return first + space + last[:-1] + "ies"
    return first + space + last + ("es" if re.search("(s|x|z|ch|sh)$", last) else "s")
