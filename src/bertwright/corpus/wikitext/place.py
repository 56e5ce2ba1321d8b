"""Which words of unknown calls to keep: those that belong to the sentence of their line, and not footnotes or remarks.

The words that a call may print (`unknown`) are put between markers, and decided on once their line is complete.

A word of the sentence is separated from the word before it; a note is attached to the text that it is about. Scripts
without spaces do not show the difference, so there the text on both sides decides.
"""

import re

_REACH = 24
"""Characters of the line before and after a call that are examined."""
_LIST = "*#:;|!{="
_ITEM = 20
"""Fewest word characters, outside calls, of a list item that is prose."""
_WORD = re.compile(r"\w")
# Private-use characters, as in `regions`.
_SURE, _PERHAPS, _END = "\U0010fff0", "\U0010fff1", "\U0010fff2"
_MARKED = re.compile(f"([{_SURE}{_PERHAPS}])([^{_SURE}{_PERHAPS}{_END}]*+){_END}")
_MARKS = re.compile(f"[{_SURE}{_PERHAPS}{_END}]")

_APART = re.compile(
    r"""(?:[\s(\[{/–—-]
      | (?:^|[\s(\[])["'“”„«»‘’‹›]+
      | [（［｛〔【〈《「『、，]                    # full-width brackets and commas have their space within
      | (?:^|[\s("“«„])[^\W\d_]{1,6}['’]         # an article or preposition that has lost its vowel: l', dell', d’
      | (?:^|[\s(])(?:ו?[בהכלמש]|[وبلكف])         # Hebrew and Arabic ones, which are joined to their word
    )$""",
    re.VERBOSE,
)
_SENTENCE_ENDED = re.compile(r"[.!?;。！？।؟…]['\"”»’)\]]*\s*$")
_GOES_ON = re.compile(r"[\w「『（]")


def marked_words(words: str, *, sure: bool) -> str:
    """Put the words that a call may print between markers for `decided`; `sure`: keep them anywhere in prose."""
    return f"{_SURE if sure else _PERHAPS}{words}{_END}"


def without_marks(text: str) -> str:
    """`text` without the marker characters, which a page itself may contain."""
    return _MARKS.sub("", text)


def decided(text: str) -> str:
    """`text` with the marked words kept that are part of a sentence, and the others removed."""
    if _END not in text:
        return text
    return "\n".join(_line(line) if _END in line else line for line in text.split("\n"))


def _line(line: str) -> str:
    listed = line.lstrip()[:1] in _LIST
    besides = len(_WORD.findall(_MARKED.sub("", line)))
    kept: list[str] = []
    position = 0
    for call in _MARKED.finditer(line):
        kept.append(line[position : call.start()])
        position = call.end()
        if besides >= _ITEM if listed else besides:
            mark, words = call.groups()
            # Examine only the end of the text before: entire lines would make the cost quadratic in their calls.
            before, after = "".join(kept[-2:])[-_REACH:], without_marks(line[position : position + _REACH])
            if mark == _SURE or (not listed and _in_sentence(before, words, after)):
                kept.append(words)
    kept.append(line[position:])
    return without_marks("".join(kept))


def _in_sentence(before: str, words: str, after: str) -> bool:
    """Whether `words` belong to the sentence around them and are not a footnote of it."""
    plain = before.replace("'''", "").replace("''", "")
    if not plain.strip() or _SENTENCE_ENDED.search(plain):
        return False
    if _APART.search(plain):
        return True
    goes_on = _GOES_ON.match(after.replace("''", "").lstrip("'")) is not None
    # Particles are written in hiragana: the text after one is usually what it leads to, seldom a note.
    joined = _is_hiragana(plain[-1]) or (_is_ideograph(plain[-1]) and _is_one_character(words))
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
