"""Sentence splitting: sentencex per paragraph, then rules of the language that undo its wrong cuts.

In any language a full stop inside a token ("ΠΑ.ΣΟ.Κ.", "১.৫") does not end a sentence, a number ("3.") or punctuation
alone is not a sentence, no sentence begins with a lower-case letter, and a quotation mark after a space belongs to the
text that follows it. `sentences.toml` lists the languages that differ, and how each treats ordinal numbers, Roman
numerals, initials and abbreviations (`JoinRules`). Full-width stops have separate rules (`fullwidth`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import accumulate, pairwise

import sentencex

from bertwright.corpus.characters import MARKS, bare, is_small, is_syllable

_OPENING = "(„\"»«“'[—–- "
_STOPS = (".", "\u2024")  # the second is the Armenian semicolon
_ORDINAL = re.compile(r"\d+(?:[–/-]\d+)?\.")
_ELIDED = re.compile(r"[’'][a-z] [^\W\d_a-z]")
_ROMAN = re.compile(r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})\.")
_HYPHENS = ("-", "\u2010", "\u2011")
# A number, or the second initial of a name ("J.-P. Sartre"); the era of "av. J.-C." ends many sentences.
_ALONE = re.compile(rf"{_ORDINAL.pattern}|-[^\W\d_a-zC]\.")
_LETTER, _VOWEL = r"[^\W\d_]", "[aeiouyäöüáéíóúýěů]"
# After a word of five letters or more with a vowel among the last three: abbreviations of this form are rare.
_BEFORE_DIGIT = re.compile(
    "|".join(f"(?<={_LETTER}{{{before}}}){_VOWEL}{_LETTER}{{{4 - before}}}\\. (?=\\d)" for before in (4, 3, 2))
)
_IN_NAME = re.compile(r"[A-Za-z\d][!?]+ *\Z")
_NAME_GOES_ON = re.compile("[A-Za-z\u30a1-\u30ff]")
_OWN_STOP = re.compile(rf"(?![A-Za-z])[^\W\d_][{MARKS}]*\.\Z")
"""A stop after a letter that is not Latin."""
# sentencex ends no sentence between two quotation marks that it takes for a pair, and often pairs a closing mark with the
# next opening one, or the marks of words (צה"ל, o‘zbek, 'n). So it is shown no pairs: every opening mark as a sign that
# it does not know, every closing one as one that closes nothing.
_MARKS = re.compile("[\"“”„«»‘‚‹›`]|'(?<!\\w')|(?<=[.!?…])[’']|'(?=')|(?<=')'")
_OPENS, _CLOSES = "‵", "”"
# Characters passed to sentencex at once; its time is quadratic where quotation marks stay open.
_WINDOW = 4096


def splitter(language: str) -> Callable[[str], list[str]]:
    """Return the function that splits a paragraph of this language into sentences.

    No sentence is empty; they have single spaces and no newline. The time is linear in the length of the paragraph; a
    sentence of more than 4,096 characters may be cut at a space.
    """
    base = "en" if language == "simple" else language.split("-")[0]
    rules = _join_rules().get(base, JoinRules())
    own_ends = _BEFORE_DIGIT if rules.digits else rules.ends

    def split(paragraph: str) -> list[str]:
        single = paragraph.isprintable() and "  " not in paragraph  # then its only white space is single ' '
        text = paragraph.strip() if single else " ".join(paragraph.split())
        if not text:
            return []
        pieces = _pieces(base, text)
        cuts = _cuts(rules, pieces) if len(pieces) > 1 else []
        if own_ends:
            cuts = sorted({*cuts, *(stop.end() for stop in own_ends.finditer(text))})
        if _may_be_full_width(text):
            cuts = _full_width_cuts(text, cuts)
        if not cuts:
            return [text]
        sentences = [text[start:stop].strip() for start, stop in pairwise([0, *cuts, len(text)])]
        return [sentence for sentence in sentences if sentence]

    return split


def _cuts(rules: JoinRules, pieces: list[str]) -> list[int]:
    """The ends of the pieces that are not joined with the next one, except the last."""
    cuts, end = list[int](), 0
    for left, right in pairwise(pieces):
        end += len(left)
        if not _joins(rules, left, right):
            cuts.append(end)
    return cuts


def _orient_marks(text: str) -> str:
    """The text, of the same length, with every quotation mark replaced by the sign of those that open or close."""
    if text.isascii() and '"' not in text and "'" not in text:
        return text
    opened = False

    def orient(mark: re.Match[str]) -> str:
        nonlocal opened
        at, sign = mark.start(), mark[0]
        before, after = text[at - 1 : at], text[at + 1 : at + 2]
        if not before or before in " ([{—–-/":
            opens = after != " " if after and (sign not in "«»“„‘‚‹›\"" or after != " ") else False
            if after == " ":
                opens = not opened if sign == '"' else sign in "«“„‘‚‹`"
        else:
            opens = False
        if sign == '"':
            opened = opens
        return _OPENS if opens else _CLOSES

    return _MARKS.sub(orient, text)


def _may_be_full_width(text: str) -> bool:
    """Whether the text has characters from U+3000 to U+3FFF or from U+F000 on, as all full-width signs are."""
    # Only these begin with such a byte in UTF-8. A class of a regular expression takes four times as long.
    data = text.encode("utf-8", "surrogatepass")
    return b"\xe3" in data or b"\xef" in data


def _full_width_cuts(text: str, cuts: list[int]) -> list[int]:
    # Imported only where there may be such signs: compiling its patterns takes milliseconds.
    from bertwright.corpus.fullwidth import is_full_width, set_ends

    return set_ends(text, cuts) if is_full_width(text) else cuts


def _joins(rules: JoinRules, left: str, right: str) -> bool:
    if left.endswith(_STOPS):  # with no space after it: inside a token, unless the author forgot the space
        # "J.-C." and "2.5" are one token each.
        if is_small(right[0]) or right[0].isdigit() or (right[0] in _HYPHENS and right[1:2].isalpha()):
            return True
        if right[0].isalpha() and _is_part_of_token(left.rpartition(" ")[2]):
            return True
    end = left.rstrip()
    # A pattern anchored at the end is tried at every position before it, so check the last character first.
    marked = rules.names and end.endswith(("!", "?"))
    if marked and (_IN_NAME.search(left) or (end == left and _NAME_GOES_ON.match(right))):
        return True
    left = end.lstrip()
    if not rules.stops and left.endswith(".") and _OWN_STOP.search(left):
        return True
    # Of sentencex's wrong cuts in Hungarian 89 % follow an ordinal number: "2010. | augusztus".
    return _ALONE.fullmatch(left) is not None or rules.joins(left, right)


def _is_part_of_token(start: str) -> bool:
    """Whether the text from a space to a stop, directly before a letter, is the start of a token ("ΠΑ.ΣΟ.", "pr.")."""
    start = start.lstrip(_OPENING)[:-1]
    # A longer word is more often the end of a sentence whose author forgot the space.
    short = (len(start) <= 3 and start.isalpha()) or is_syllable(start)
    return start.isupper() or short or "." in start.rstrip(".")


def _pieces(language: str, text: str) -> list[str]:
    """The pieces into which sentencex cuts the text, each with the spaces after it."""
    plain = _orient_marks(text)
    pieces = _pieces_of_plain(language, plain)
    if plain == text:
        return pieces
    ends = list(accumulate(map(len, pieces)))
    for i, end in enumerate(ends[:-1]):
        while plain[end - 1] == _OPENS:
            end -= 1
        if plain[end] == _CLOSES:
            end += 1 + (plain[end + 1 : end + 2] == " ")
        ends[i] = end
    return [text[start:stop] for start, stop in pairwise([0, *ends])]


def _pieces_of_plain(language: str, text: str) -> list[str]:
    pieces: list[str] = []
    start = 0
    while len(text) - start > _WINDOW:
        # No window is shorter than half of `_WINDOW`, so each one ends a piece and the next one begins later.
        stop = text.rfind(" ", start + _WINDOW // 2, start + _WINDOW) + 1 or start + _WINDOW
        *whole, last = sentencex.segment(language, text[start:stop])
        pieces += whole
        if len(last) > _WINDOW // 2:  # else it is segmented again together with the following text
            pieces.append(last)
            last = ""
        start = stop - len(last)
    pieces += sentencex.segment(language, text[start:])
    return pieces


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
        right = right.lstrip(_OPENING)
        if not right or (not opens and is_small(right[0])):
            return True
        if not left.endswith(_STOPS):
            return False
        rest, _, last = left.rpartition(" ")
        last = last.lstrip(_OPENING)
        if _ORDINAL.fullmatch(last):
            return self._is_ordinal(rest, last, right)
        initial = len(bare(last)) == 2 and last[0].isalpha() and not is_small(last[0])
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
def _join_rules() -> dict[str, JoinRules]:
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
