"""Ends of sentences in Chinese and Japanese text: "。！？" end a sentence anywhere, with or without spaces.

They do not inside paired brackets or quotation marks. A closing mark after the stop belongs to the sentence. A comma or
a Japanese particle after speech ("「…。」と言った") continues the sentence, and a title or a remark in brackets ends a
sentence only where it began one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

_SPEECH = {"「": "」", "“": "”", "‘": "’", "﹁": "﹂"}
_TITLES_AND_REMARKS = {
    "『": "』", "《": "》", "〈": "〉", "﹃": "﹄", "（": "）", "(": ")", "〔": "〕", "［": "］", "[": "]", "【": "】",
}  # fmt: skip
_CLOSING = {closing: opening for opening, closing in (_SPEECH | _TITLES_AND_REMARKS).items()}
_BRACKET = re.compile(f"[{re.escape(''.join(_CLOSING) + ''.join(_CLOSING.values()))}]")
# "．" is also the full-width decimal point, so it must follow a letter.
_SIGN = re.compile(r"[。｡！？「『《〈﹁﹃（【〔［．](?:(?<!．)|(?<=[\u3040-\u30ff\u3400-\u9fff]．))")
_STOP = re.compile(r"(?:[。｡！？]|(?<=[\u3040-\u30ff\u3400-\u9fff])．)[。｡！？!?…]*")
_GOES_ON = ("、", "，", ",", "。", "｡", "；", "：", "・", "·", "的")
_PARTICLES = (
    *"とのをはがにでもやかへだ",
    *("って", "など", "から", "まで", "より", "です", "なる", "なんて"),
)
# Most characters between the brackets of a pair: farther apart, one of them is a typo, which would hide all ends.
_LONGEST = 500

Pairs = list[tuple[int, int]]


def is_full_width(text: str) -> bool:
    """Whether the text has any of the full-width signs that this module handles."""
    return _SIGN.search(text) is not None


def set_ends(text: str, cuts: Iterable[int]) -> list[int]:
    """Where sentences begin, given the `cuts` found by the rules for other stops.

    Cuts inside brackets and after full-width stops are replaced by those of the rules here.
    """
    pairs = _outermost(text)
    kept = {cut for cut in cuts if not _follows_stop(text, cut) and not _around(pairs, cut)}
    return sorted(kept | set(_begins(text, pairs)))


def _begins(text: str, pairs: Pairs) -> Iterable[int]:
    begin = 0
    for stop in _STOP.finditer(text):
        at, pair = stop.end(), _around(pairs, stop.start())
        if pair:
            inside = text[at : pair[1] + 1]
            if not all(character in _CLOSING for character in inside):
                continue
            at = pair[1] + 1
        while at < len(text) and text[at] in _CLOSING:
            at += 1
        if text.startswith(_GOES_ON, at) or (pair and _is_part(text, pair, at, begin)):
            continue
        begin = at + len(text[at : at + 1]) - len(text[at : at + 1].lstrip())
        if begin < len(text):
            yield begin


def _is_part(text: str, pair: tuple[int, int], at: int, begin: int) -> bool:
    """Whether the sentence that began at `begin` continues after brackets whose content ended in a stop."""
    if text[pair[0]] in _TITLES_AND_REMARKS and pair[0] != begin:
        return True
    # 「…。」と言った: a particle makes the speech part of the enclosing sentence.
    return text.startswith(_PARTICLES, at)


def _outermost(text: str) -> Pairs:
    """The positions of the outermost pairs of opening and closing brackets."""
    pairs, opened = list[tuple[int, int]](), list[tuple[str, int]]()
    waiting = Counter[str]()
    for match in _BRACKET.finditer(text):
        sign, at = match[0], match.start()
        opening = _CLOSING.get(sign)
        if opening is None:
            opened.append((sign, at))
            waiting[sign] += 1
        elif waiting[opening]:
            other, start = "", at
            while other != opening:
                other, start = opened.pop()
                waiting[other] -= 1
            if at - start <= _LONGEST:
                while pairs and pairs[-1][0] > start:
                    pairs.pop()
                pairs.append((start, at))
    return pairs


def _around(pairs: Pairs, at: int) -> tuple[int, int] | None:
    """The pair that encloses this position, or None."""
    place = bisect_right(pairs, at, key=lambda pair: pair[0]) - 1
    return pairs[place] if place >= 0 and pairs[place][0] < at <= pairs[place][1] else None


def _follows_stop(text: str, cut: int) -> bool:
    """Whether a full-width stop, and any closing marks and spaces after it, precede this position."""
    at = cut - 1
    while at >= 0 and (text[at].isspace() or text[at] in _CLOSING):
        at -= 1
    return at >= 0 and text[at] in "。｡！？．"
