"""Prose that is an argument of a template that nothing explains: text in doubt, in another size or colour, in columns.

{{refnec|Whole sentences, which somebody doubts.|date=May 2011}} has the form of a footnote or a notice, but for its
length: notes are cited works or a remark, and the arguments of boxes are names and numbers.
"""

import re
from collections.abc import Sequence

LONGEST = 8000
"""The longest call that is considered, in characters."""
PARAGRAPH = 60
"""The shortest call that is an entire paragraph, in characters."""
_FEWEST, _FEWEST_ALONE = 6, 20
"""Words of a prose argument within a line, and of one that is an entire paragraph."""
_LETTERS = 4
"""Characters per word in scripts that have no spaces."""
_NO_PROSE = re.compile(r"://|www\.|[|{}]|&#124;|\bISBN\b|\bhttps?\b|\bdoi\b", re.I)
_ENDED = re.compile(r"[.!?。！？।؟։။។…:;][\"'”»’)\]」』\s]*$")
_ITEM = re.compile(r"[*#:;]+\s*")
_HIDDEN = re.compile(r"<[^<>]*>|'''?|&[a-z]+;")
_MOST_OTHERS, _LONGEST_OTHER = 4, 60
_DATE = re.compile(r"\d")


def is_prose(text: str, fewest: int = _FEWEST) -> bool:
    """Whether `text` is running prose of at least `fewest` words: most of its words begin with a small letter."""
    if len(text) < 2 * fewest or _NO_PROSE.search(text):
        return False
    plain = _HIDDEN.sub(" ", text)
    words = [word for word in plain.split() if any(map(str.isalpha, word))]
    letters = sum(map(str.isalpha, plain))
    if sum(map(str.isdigit, plain)) > letters / 4:
        return False
    capitals = sum(next(filter(str.isalpha, word)).isupper() for word in words)
    if len(words) < fewest:  # no capitals, no spaces
        return (
            not capitals and letters >= _LETTERS * fewest and letters > 20 * len(words) and bool(_ENDED.search(plain))
        )
    commas = plain.count(",") + plain.count("،") + plain.count("、")
    return capitals <= 0.55 * len(words) and commas <= 0.4 * len(words)


def prose_argument(given: Sequence[str]) -> str:
    """The argument within a line that is prose, if the others are short: a remark, a date; "" if there is none."""
    if not 1 <= len(given) <= 1 + _MOST_OTHERS or any(len(each) > _LONGEST_OTHER for each in given[1:]):
        return ""
    return given[0] if is_prose(given[0]) else ""


def paragraphs_of(given: Sequence[str]) -> str:
    """The only argument of a call that is alone on its lines, as paragraphs; "" if they are no prose.

    Notices about the page are shorter, and add their topic and date as arguments.
    """
    if len(given) != 1:
        return ""
    lines = [line.strip() for line in given[0].split("\n") if line.strip()]
    text = " ".join(_ITEM.sub("", line) for line in lines)
    if not is_prose(text, _FEWEST_ALONE) or not any(map(_ENDED.search, lines)):
        return ""
    return f"\n\n{given[0]}\n\n"
