"""The words that unexplained calls of templates may print, marked until their line is complete: which of them stay.

A word of the sentence is separated from the word before it; a note is attached to the text that it is about. Scripts
without spaces do not show the difference, so there the text on both sides decides. Where a number is missing that only
the template knows, the mark `LOST` remains, so that the sentence can be dropped: it would say something else.
"""

import re

from bertwright.corpus.wikitext.quantities import is_abbreviation

_REACH = 24
"""Characters of the line before and after a call that are examined."""
_LIST = "*#:;|!{="
_ITEM = 20
"""Fewest word characters, outside calls, of a list item that is prose."""
_WORD = re.compile(r"\w")
# Private-use characters, as in `regions`. The kinds of words: sure; perhaps a part of the sentence; what stands after a
# number; prose; and none, where the number is lost that all or some of the arguments give.
SURE, PERHAPS, AFTER_NUMBER, PROSE, NUMBER, SOME_NUMBER = map(chr, range(0x10FFF0, 0x10FFF6))
_END = "\U0010fff8"
LOST = "\U0010fff9"
"""Remains in the place of a number that is lost. A table may print it, too."""
_KINDS = f"[{SURE}-{SOME_NUMBER}]"
_MARKED = re.compile(f"({_KINDS})([^{SURE}-{_END}]*+){_END}")
_MARKS = re.compile(f"[{SURE}-{_END}]")

_APART = re.compile(
    r"""(?:[\s(\[{/–—-]
      | (?:^|[\s(\[])["'“”„«»‘’‹›]+
      | [（［｛〔【〈《「『、，]                    # full-width brackets and commas have their space within
      | (?:^|[\s("“«„])[^\W\d_]{1,6}['’]         # an article or preposition that has lost its vowel: l', dell', d’
      | (?:^|[\s(])(?:ו?[בהכלמש]|[وبلكف])         # Hebrew and Arabic ones, which are joined to their word
    )$""",
    re.VERBOSE,
)
_NUMBER_BEFORE = re.compile(r"(?:\d|\b[IVXLC]+)[)\]]?(?:\s|&nbsp;)*$")
_CURRENCY_BEFORE = re.compile(r"[$€£¥₹₽₩₺₴₪฿₫₱₦](?:\s|&nbsp;)?$")
# Signs of area, density, shares and people, before which a number stands and never a word.
_COUNTED_AFTER = (
    *("%", "°C", "°F", "чел.", "hab.", "inw.", "ab.", "os.", "ос."),
    *(metre + square for metre in ("m", "km", "м", "км") for square in ("²", "2", "<sup>2")),
)
_SENTENCE_ENDED = re.compile(r"[.!?;。！？।؟…]['\"”»’)\]]*\s*$")
_WORD_BEFORE, _AMID = re.compile(r"[^\W\d_]{2,}"), re.compile(r"[\s,)]*\w")
_STOPS = ".,;:!?)]।。，、）؛،"
_GOES_ON = re.compile(r"[\w「『（]")
_INNER_END = re.compile(r"[.!?।։](?:\s|$)|。")


def mark(kind: str, words: str = "") -> str:
    """Put the words that a call may print between markers for `keep_words`."""
    return f"{kind}{words}{_END}"


def without_marks(text: str) -> str:
    """`text` without the marker characters, which a page itself may contain."""
    return text if text.isascii() else _MARKS.sub("", text)


def keep_words(text: str) -> str:
    """`text` with the marked words kept that are part of a sentence, and the others removed."""
    kept: list[str] = []
    position = 0
    while (place := text.find(_END, position)) >= 0:
        start, stop = text.rfind("\n", position, place) + 1 or position, text.find("\n", place)
        stop = stop if stop >= 0 else len(text)
        kept += text[position:start], _line(text[start:stop])
        position = stop
    return "".join([*kept, text[position:]]) if kept else text


def _line(line: str) -> str:
    listed = line.lstrip()[:1] in _LIST
    besides = len(_WORD.findall(_MARKED.sub("", line)))
    running = besides >= _ITEM if listed else bool(besides)
    kept: list[str] = []
    position = 0
    for call in _MARKED.finditer(line):
        kept.append(line[position : call.start()])
        position = call.end()
        kind, words = call.groups()
        if running or kind == PROSE:
            # Examine only the end of the text before: entire lines would make the cost quadratic in their calls.
            before, after = "".join(kept[-2:])[-_REACH:], without_marks(line[position : position + _REACH])
            kept.append(_kept(kind, words, before, after, listed=listed))
    kept.append(line[position:])
    return without_marks("".join(kept))


def _is_counted(after: str) -> bool:
    return after.replace("&nbsp;", " ").lstrip().startswith(_COUNTED_AFTER)


def _kept(kind: str, words: str, before: str, after: str, *, listed: bool) -> str:
    """What remains of a marked call: its words, `LOST`, or nothing."""
    plain = before.replace("'''", "").replace("''", "")
    if kind == AFTER_NUMBER:
        if _NUMBER_BEFORE.search(plain):
            return " " * plain[-1:].isalnum() + words
        return words if is_abbreviation(words) and not listed and _in_sentence(plain, words, after) else ""
    if not words[:1].isdigit() and (_CURRENCY_BEFORE.search(plain) or (words and _is_counted(after))):
        return LOST
    if kind == SURE:
        return words
    if kind == PROSE:
        return words if _is_own_prose(plain, words, after, listed=listed) else ""
    if kind in (NUMBER, SOME_NUMBER):
        return LOST if kind == NUMBER and not listed and _is_word_missing(plain) else ""
    # The first words of a list's item, and the last ones, are flags and the languages of sources.
    amid = not listed or (_WORD_BEFORE.search(plain) and _AMID.match(after))
    return words if amid and _in_sentence(plain, words, after) else ""


def _is_own_prose(before: str, prose: str, after: str, *, listed: bool) -> bool:
    """Whether prose in a call is the text's own: a note is attached to the text before it, or is itself sentences."""
    start = before.lstrip(_LIST + " \t") if listed else before.strip()
    if not start:
        return bool(_SENTENCE_ENDED.search(prose) or (after.strip() and not after.strip(_STOPS + " ")))
    if not _APART.search(before):
        return False
    inside = not _SENTENCE_ENDED.search(before) and start[-1] not in ":：—–-«“„\"'"
    next_character = after.strip(" '")[:1]
    goes_on = _SENTENCE_ENDED.search(prose) and (next_character.islower() or next_character in _STOPS)
    return not (inside and (_INNER_END.search(prose[:-1]) or (next_character and goes_on)))


def _is_word_missing(before: str) -> bool:
    """Whether a call that prints nothing after `before` leaves a hole in a sentence, and not in brackets."""
    apart = (_APART.search(before) and before[-1] not in "([{（［｛〔【") or _is_hiragana(before[-1:])
    return bool(before.strip() and apart and not _SENTENCE_ENDED.search(before))


def _in_sentence(before: str, words: str, after: str) -> bool:
    """Whether `words` belong to the sentence around them and are not a footnote of it."""
    if not before.strip() or _SENTENCE_ENDED.search(before):
        return False
    if _APART.search(before):
        return True
    goes_on = _GOES_ON.match(after.replace("''", "").lstrip("'")) is not None
    # Particles are written in hiragana: the text after one is usually what it leads to, seldom a note.
    joined = _is_hiragana(before[-1]) or (_is_ideograph(before[-1]) and _is_one_character(words))
    return goes_on and joined


# Comparisons, because compiling a class of a regular expression with the ideographs takes three milliseconds.
def _is_hiragana(character: str) -> bool:
    return "ぁ" <= character <= "ゖ"


def _is_ideograph(character: str) -> bool:
    """Whether a character is an ideograph of the Basic Multilingual Plane or katakana."""
    return (
        "\u3400" <= character <= "\u9fff"
        or "\uf900" <= character <= "\ufaff"
        or "ァ" <= character <= "ヺ"
        or character in "々〆ー"
    )


def _is_one_character(words: str) -> bool:
    """Whether `words` are one character of Japanese or Chinese, which may have a variation selector.

    A single character, which a font may lack or which is highlighted, is part of a name or word.
    """
    if not 1 <= len(words) <= 2:
        return False
    first, selector = words[0], words[1:]
    selected = not selector or "\ufe00" <= selector <= "\ufe0f" or "\U000e0100" <= selector <= "\U000e01ef"
    return selected and (_is_hiragana(first) or _is_ideograph(first) or "\U00020000" <= first <= "\U0003ffff")
