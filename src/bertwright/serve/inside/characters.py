"""What BERT's tokenizer does with each character, asked of the library, so that a program without it does the same.

Browsers have tables of Unicode of their own, newer or older than the library's: a sign that is a letter to one is
punctuation to another. So a page takes nothing about a character from its browser but the canonical forms of those that
the library knows, which no later version of Unicode changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import normalizers, pre_tokenizers

_BETWEEN = "0"
"""Stands between characters that are asked about at once: it combines with none, and each rule leaves it as it is."""
_SURROGATES = range(0xD800, 0xE000)
# No version of Unicode assigns anything in the planes between; two more are for private use, each of one kind.
_ASKED = [
    chr(code)
    for codes in (range(0x40000), range(0xE0000, 0xE1000), (0xF0000, 0x100000))
    for code in codes
    if code not in _SURROGATES and chr(code) != _BETWEEN
]
_PRIVATE = ((0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))
_RULES = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
_FIRST_CLASS, _LAST_CLASS = "\u0334", "\u0345"
"""Marks of the combining classes 1 and 240: any other mark changes places with one of them."""


def character_rules() -> dict[str, Any]:
    """The characters of each rule, as the inside of a class of a regular expression of JavaScript with the flag u.

    `composing`: those that Unicode's canonical forms change or combine; `dropped` and `space`: those that cleaning
    removes and takes for a space; `ideographs`: those that are words of their own; `accents`: those that are removed
    after decomposing; `lower`: a mapping to lower case; `white` and `punctuation`: those that part words, of which the
    latter are words.
    """
    clean, ideographs, accents, lower = map(_by_rule, _RULES)
    white, punctuation = _parting()
    return {
        "composing": _class(_composing()),
        "dropped": _class(c for c, becomes in clean.items() if not becomes),
        "space": _class(c for c, becomes in clean.items() if becomes),
        "ideographs": _class(ideographs),
        "accents": _class(c for c, becomes in accents.items() if not becomes),
        "lower": lower,
        "white": _class(white),
        "punctuation": _class(punctuation),
    }


def _by_rule(rule: str) -> dict[str, str]:
    """The characters that one rule of BERT's normalisation changes, and what they become."""
    asked = normalizers.BertNormalizer(**{each: each == rule for each in _RULES})
    return {c: becomes for c, becomes in zip(_ASKED, _normal(asked, _ASKED), strict=True) if c != becomes}


def _composing() -> set[str]:
    nfd = normalizers.NFD()
    alone = _normal(nfd, _ASKED)
    followed = _normal(nfd, [f"{c}{_FIRST_CLASS}" for c in _ASKED])
    led = _normal(nfd, [f"{_LAST_CLASS}{c}" for c in _ASKED])
    found = set[str]()
    for c, parts, first, last in zip(_ASKED, alone, followed, led, strict=True):
        if parts != c:
            found |= {c, *parts}
        if first != f"{parts}{_FIRST_CLASS}" or last != f"{_LAST_CLASS}{parts}":
            found.add(c)
    return found


def _normal(normalizer: normalizers.Normalizer, texts: Sequence[str]) -> list[str]:
    return normalizer.normalize_str(_BETWEEN.join(texts)).split(_BETWEEN)


def _parting() -> tuple[list[str], list[str]]:
    """White space and punctuation."""
    text = _BETWEEN.join(["", *_ASKED, ""])
    white, punctuation = set(range(1, len(text), 2)), list[str]()
    for word, (begin, end) in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text):
        white -= set(range(begin, end))
        if word != _BETWEEN and end - begin == 1:
            punctuation.append(word)
    return [text[place] for place in sorted(white)], punctuation


def _class(characters: Iterable[str]) -> str:
    """Characters as ranges of code points, such as `\\u{30}-\\u{39}`."""
    ranges = list[list[int]]()
    for code in sorted(map(ord, characters)):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    whole = dict(_PRIVATE)
    return "".join(f"\\u{{{first:x}}}-\\u{{{whole.get(last, last):x}}}" for first, last in ranges)
