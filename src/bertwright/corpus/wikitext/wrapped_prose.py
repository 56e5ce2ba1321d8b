"""Prose that is an argument of a template that nothing explains: text in doubt, in another size or colour, in columns.

{{refnec|Whole sentences, which somebody doubts.|date=May 2011}} has the form of a footnote or a notice, but for its
length: notes are cited works or a remark, and the arguments of boxes are names and numbers.
"""

import re
from collections.abc import Sequence

from bertwright.corpus.wikitext.templates import arguments, template_key

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
_LETTER = re.compile(r"[^\W\d_]")
_CODE = re.compile(r"[A-Z]{2,3}(?:-\w+)?|Q\d+")
_SEVERAL_WORDS = re.compile(r"\S\s+\S+\s+\S+\s+\S")
# Sizes, places, colours, and the scan that a page is of.
_STYLE = re.compile(
    r"""[\w.-]+\s*: | [\d.]+\s*(?:em|px|%|pt)\Z | (?:left|right|center|top|bottom|block|none)\Z
      | .*\.(?:djvu?|pdf|tiff?|jpe?g|png|gif|svg|webp)(?:/\w+)?\Z""",
    re.VERBOSE | re.IGNORECASE,
)
# The beginning of a chapter: its first letter and the rest of its word.
_INITIAL, _REST = re.compile(r"[\"'“”„«‘’]{0,2}[^\W\d_]\Z"), re.compile(r"[’']?[^\W\d_]")


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


def listing_text(values: list[str]) -> str:
    """The name and the description of a place, given the arguments of a call on a Wikivoyage; "" if it has none.

    Each wiki has its own names for the templates and their arguments, but a listing has its description, the only
    prose among telephone numbers and prices, as an argument with a name, and before it the name of the place.
    """
    named = {key: value for key, value in arguments(values).items() if not key.isdecimal()}
    description = max(filter(is_prose, named.values()), key=len, default="")
    if not description:
        return ""
    place = next((value for value in named.values() if _is_name(value)), "")
    return f"{place}. {description}" if place and place != description else description


def _is_name(text: str) -> bool:
    """Whether an argument may name a place: no type of places, code, number, address on the web or description."""
    letter = _LETTER.search(text)
    return letter is not None and not (letter[0].islower() or _CODE.fullmatch(text) or _NO_PROSE.search(text))


def wrapped_text(name: str, values: list[str], *, alone: bool) -> str:
    """The text that a call on a Wikisource prints; "" if none of its arguments is text. Of a call `alone` on its line,
    which may be a banner, only a text of four words or more.

    Nearly all templates in the text of a book only set a part of it in another form: in small capitals, centred,
    spaced. So a call prints its longest unnamed argument; the others are sizes, colours and places. An initial and the
    letters after it are both printed.
    """
    key = template_key(name)
    if not key or key[0] in "#{" or ":" in key:
        return ""
    given = [value for number, value in arguments(values).items() if number.isdecimal() and not _STYLE.match(value)]
    text = max(given, key=len, default="")
    if len(given) == 2 and _INITIAL.match(given[0]) and _REST.match(given[1]) and given[0].isupper():
        text = "".join(given)
    if not _LETTER.search(text) or (alone and not _SEVERAL_WORDS.search(text)):
        return ""
    return f"\n\n{text}\n\n" if alone else text
