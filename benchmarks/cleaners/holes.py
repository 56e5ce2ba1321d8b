"""Holes: template calls inside sentences that left nothing in a cleaner's text.

The rule, the same for every cleaner:

1. A line of the markup is prose if, its leading calls aside, it begins with a letter, a digit or an opening quotation
   mark, and has five words or more outside its calls. List items, tables, references, captions and headings are not.
2. A call counts as part of its outermost call. Calls of the templates in `silent`, which print nothing or a
   footnote mark, are as if they were not there; a call by the code of a language is one only where it is given nothing.
   Calls with nothing but spaces and punctuation between them are one.
3. A call is judged if text stands before and after it on its line. Its neighbours are the up to 20 characters before
   and after it (spaces and punctuation aside), ended by another call or by anything else that is not text (maths, line
   breaks); each must have three characters, and both together eight, else they would be found anywhere.
4. In the cleaner's text, also without spaces and punctuation, the place is searched where the two neighbours stand
   nearest to each other in this order, at most 300 characters apart. If nothing lies between them, the call is a hole;
   if there is no such place, the sentence was dropped or rewritten, and the call is "not found".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .leftovers import WORD
from .silent import is_silent

IGNORED = re.compile(r"[\s,.;:!?()\[\]{}'\"«»„“”‘’*#=|_/\\\u200b-\u200f\u2060\xad।։՝՛՞]+")
_REACH, _SHORTEST, _TOGETHER, _FARTHEST, _WORDS = 20, 3, 8, 300, 5

Piece = str | list[str] | None


@dataclass(frozen=True)
class Call:
    """A call, or several in a row, with the squeezed text before and after."""

    names: tuple[str, ...]
    before: str
    after: str


def squeeze(text: str) -> str:
    """The text without what cleaners space and punctuate differently."""
    return IGNORED.sub("", text)


def calls(line: Sequence[Piece], language: str = "") -> Iterator[Call]:
    """The calls to be judged in a line of a wiki in `language`.

    The line's pieces are text, `[template name, argument, call]` and None where text is interrupted.
    """
    pieces = list(_joined(line, language))
    while pieces and (not pieces[0] or not isinstance(pieces[0], str)):
        del pieces[0]
    text = " ".join(piece for piece in pieces if isinstance(piece, str))
    if not re.match(r"\s*[\"'«„“‘(]*\w", text) or len(WORD.findall(text)) < _WORDS:
        return
    for before, names, after in zip(pieces, pieces[1:], pieces[2:], strict=False):
        if isinstance(names, list) and isinstance(before, str) and isinstance(after, str):
            call = Call(tuple(names), squeeze(before)[-_REACH:], squeeze(after)[:_REACH])
            lengths = len(call.before), len(call.after)
            if min(lengths) >= _SHORTEST and sum(lengths) >= _TOGETHER:
                yield call


def _joined(line: Sequence[Piece], language: str) -> Iterator[Piece]:
    """The line with neighbouring texts as one and neighbouring calls as one, without the silent calls."""
    last: Piece = ""
    for piece in line:
        if isinstance(piece, list):
            name, argument, call = (*piece, "", "")[:3]
            if is_silent(name, argument, call, language):
                continue
            piece = piece[:1]
        if isinstance(last, str) and isinstance(piece, str):
            last += piece
        elif isinstance(last, list) and isinstance(piece, list):
            last = last + piece
        elif not (isinstance(last, list) and isinstance(piece, str) and not squeeze(piece)):
            yield last
            last = piece
    yield last


def output(call: Call, squeezed: str) -> str | None:
    """What stands for the call in a cleaner's squeezed text of the page; "" is a hole, None is not found."""
    nearest = None
    there = squeezed.find(call.after)
    while there >= 0:
        here = squeezed.rfind(call.before, max(0, there - _FARTHEST - len(call.before)), there)
        between = squeezed[here + len(call.before) : there]
        if here >= 0 and (nearest is None or len(between) < len(nearest)):
            nearest = between
        there = squeezed.find(call.after, there + 1)
    return nearest
