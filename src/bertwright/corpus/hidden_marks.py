"""Text as sentencex is shown it: without pairs of quotation marks and without list markers.

sentencex ends no sentence between two marks that it takes for a pair, so a quotation of three sentences stays whole.
Worse, it pairs a closing mark with the next opening one where a mark is missing, and takes marks of words for opening
ones (צה"ל, o‘zbek, 'n), so that no sentence of the prose between them ends. Nor does one end in brackets, or after
a bullet.
"""

from __future__ import annotations

import re

from bertwright.corpus.characters import in_word

OPENS, CLOSES = "‵", "”"
"""What stands for a mark that opens or closes a quotation: the first is none that sentencex knows."""
# A search for one character takes a thirtieth of the time that a class of characters takes, and a call for each mark
# takes longer than the rest, so most marks are replaced without one.
_OPENING = [(mark, re.compile(mark)) for mark in "«“„‘‚‹"]
_CLOSING = [(mark, re.compile(mark)) for mark in "»”›"]
_ASCII_MARKS = [
    ("`", re.compile("`")),
    ("'", re.compile("'(?:(?<!\\w')|(?=')|(?<=''))")),
    # The number of a list, or a sentence.
    ("(", re.compile(r"\((?:(?=[A-Za-z\d]{1,6}\) )|(?:(?<=[.!?…] \()|(?<=\A\())(?=[^\W\da-z_][^()]*[.!?…]\)))")),
]
_OTHER_MARKS = [("’", re.compile("’(?<!\\w’)")), ("•", re.compile("•"))]
_STRAIGHT = re.compile('"')
_BEFORE_OPENING = f"' ([{{—–-/`{OPENS}"
_CLOSE_ALONE = "»”’›'"


def hide_marks(text: str) -> str:
    """The text, of the same length, with `OPENS` or `CLOSES` for each quotation mark, and `OPENS` for a bullet and for
    a bracket around the number of a list or around a sentence; apostrophes in words stay.
    """
    for mark, pattern in _ASCII_MARKS:
        if mark in text:
            text = pattern.sub(_hide, text)
    if not text.isascii():
        text = _hide_directed(text)
    return _hide_straight(text) if '"' in text else text


def _hide_directed(text: str) -> str:
    for mark, pattern in _OPENING:
        if mark in text:
            text = text.replace(f" {mark}", f" {OPENS}")
            text = pattern.sub(_hide, text) if mark in text else text
    for mark, pattern in _CLOSING:
        if mark in text:
            opens = text[0] == mark or f" {mark}" in text or f"({mark}" in text
            text = pattern.sub(_hide, text) if opens else text.replace(mark, CLOSES)
    for mark, pattern in _OTHER_MARKS:
        if mark in text:
            text = pattern.sub(_hide, text)
    return text


def _hide(mark: re.Match[str]) -> str:
    at, text = mark.start(), mark.string
    # To `\w` a vowel sign is no letter, but an apostrophe after one belongs to its word all the same.
    if mark[0] in "'’" and in_word(text[at - 1 : at]) and text[at + 1 : at + 2] != mark[0]:
        return mark[0]
    if at > 0 and text[at - 1] not in _BEFORE_OPENING:
        return CLOSES
    # Between two spaces only its form tells.
    return CLOSES if text[at + 1 : at + 2] in " " and mark[0] in _CLOSE_ALONE else OPENS


def _hide_straight(text: str) -> str:
    opened = False

    def hide(mark: re.Match[str]) -> str:
        nonlocal opened
        at = mark.start()
        opens = at == 0 or text[at - 1] in _BEFORE_OPENING
        if opens and text[at + 1 : at + 2] in " ":  # between two spaces: every second one opens
            opens = not opened
        opened = opens
        return OPENS if opens else CLOSES

    return _STRAIGHT.sub(hide, text)
