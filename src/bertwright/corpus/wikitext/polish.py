"""The last cleaning step: normalise characters, and close the gaps left by dropped markup."""

import re

from bertwright.corpus.characters import WORD_BREAK, compose, in_word, is_small
from bertwright.corpus.wikitext.regions import decode_references, restore_literals

# Control characters and every kind of space except the line feed.
_SPACE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
# Soft hyphen, bidi controls, word joiner, byte-order mark, and a zero-width space, except where it separates words, as
# in Khmer. The zero-width joiner and non-joiner stay: they are spelling in Bengali, Marathi and Persian.
_INVISIBLE = re.compile("[\xad\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_ZERO_WIDTH_SPACE = re.compile(f"(?!{WORD_BREAK})\u200b")
# Two patterns, not one alternation: a pattern that begins with a fixed character is four times as fast.
# After an ASCII letter or digit they are code: "main()", "int[]".
_EMPTY_BRACKETS = (
    re.compile(r"\((?<!\w\()[ ,;:،؛]*+\)", re.ASCII),
    re.compile(r"\[(?<!\w\[)[ ,;:،؛]*+\]", re.ASCII),
)
_AFTER_OPENING = re.compile(r"\([ ,;:،؛]++")
_SPACES = re.compile("  +")
_SPACE_BEFORE_CLOSING = re.compile(" (?=[,;)։،؛。])")
_STOP_TWICE = re.compile(r"\. \.(?![\w.])")
_SPACE_BEFORE_STOP = re.compile(r" \.(?![\w.])")
_MARK_BEFORE_STOP = {mark: re.compile(rf" {mark}\.(?![\w.])") for mark in "–—:"}
_STOP_AGAIN = re.compile(r"\.\.(?=\n|$| (\w)| \W)")
_BEFORE_STOPS = ')]»”"_'
# The same for full-width punctuation, which is not followed by a space: of consecutive marks only the first is kept,
# and none before a closing mark.
_FULL_WIDTH = [
    (re.compile("（[ 、，；]*+）"), ""),
    (re.compile("（[ 、，；]++"), "（"),
    (re.compile("[ 、，；]++(?=[）。])"), ""),
    (re.compile("([、，]) ?[、，]+"), r"\1"),
    (re.compile("(?<!。)。 ?。(?!。)"), "。"),
]
# A mark whose words were dropped, before a comma, a closing bracket or a full stop.
_DANGLING = [re.compile(rf"{mark}(?=[,،)]|\.(?![\w.]))") for mark in ",;:؛،"]


def _one_stop(stops: re.Match[str]) -> str:
    """One of two stops that had a footnote between them; both after no word, and where two dots before a lower-case
    letter are a pause of the author's."""
    before = stops.string[stops.start() - 1 : stops.start()]
    pause = stops[1] and is_small(stops[1])
    return ".." if pause or not (before and (before in _BEFORE_STOPS or in_word(before))) else "."


_MINUS = "&minus;|&ndash;|&#8722;|[-−–]"
_POWER = re.compile(
    rf"<sup(?<=[\w)\]'’]<sup)(?:\s[^<>]*+)?>\s*((?:{_MINUS}|\+)?[0-9]{{1,4}}(?:{_MINUS}|\+)?)\s*</sup\s*>",
    re.IGNORECASE,
)
_INDEX = re.compile(r"<sub(?<=[0-9]<sub)(?:\s[^<>]*+)?>\s*([0-9]{1,4})\s*</sub\s*>", re.IGNORECASE)
_ANY_MINUS = re.compile(_MINUS)
RAISED = str.maketrans("0123456789-−+n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻⁺ⁿ")
"""The raised form of each character of an exponent."""
_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def keep_powers(text: str) -> str:
    """The text with the numbers that HTML tags raise or lower as such characters: "10<sup>6</sup>" is 10⁶, not 106.

    Other raised text ("1<sup>er</sup>") reads the same without its tags, and so do lowered numbers after letters (H2O).
    """
    if "<su" not in text and "<SU" not in text:
        return text
    text = _POWER.sub(lambda power: _ANY_MINUS.sub("-", power[1]).translate(RAISED), text)
    return _INDEX.sub(lambda index: index[1].translate(_LOWERED), text)


def polish(text: str) -> str:
    """The text in NFC with plain spaces, character references decoded and gaps closed; same number of lines.

    Removes soft hyphens, bidi controls, byte-order marks, zero-width spaces that separate no words, empty brackets, and
    the space, comma or dash that a dropped template leaves before a comma or full stop.
    """
    if "&" in text:
        text = decode_references(text.replace("&nbsp;", " "))
    lines = text.split("\n")
    if all(map(str.isprintable, lines)):
        return close_gaps(compose(text))
    # The characters replaced here, and those of literal text, are not printable, so most lines can be skipped.
    text = "\n".join(line if line.isprintable() else _INVISIBLE.sub("", _SPACE.sub(" ", line)) for line in lines)
    if "\u200b" in text:
        text = _ZERO_WIDTH_SPACE.sub("", text)
    # Literal text is restored last, so that no part of it is mistaken for a gap.
    return restore_literals(close_gaps(compose(text)))


def close_gaps(text: str) -> str:
    """The text without the empty brackets and stray punctuation that dropped markup leaves."""
    for _ in range(2):  # twice, for brackets that contained only empty brackets
        before = text
        for empty in _EMPTY_BRACKETS:
            text = empty.sub("", text)
        if text == before:
            break
    text = _AFTER_OPENING.sub("(", text)
    if "  " in text:
        text = _SPACES.sub(" ", text)
    text = _SPACE_BEFORE_CLOSING.sub("", text)
    if " ." in text:
        text = _SPACE_BEFORE_STOP.sub(".", _STOP_TWICE.sub(".", text))
    if ".." in text:
        text = _STOP_AGAIN.sub(_one_stop, text)
    if "。" in text:
        for gap, left in _FULL_WIDTH:
            text = gap.sub(left, text)
    for mark, pattern in _MARK_BEFORE_STOP.items():
        if f" {mark}." in text:
            text = pattern.sub(".", text)
    for dangling in _DANGLING:
        text = dangling.sub("", text)
    return text
