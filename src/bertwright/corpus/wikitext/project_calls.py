"""What calls that nothing explains print on a Wikisource, a Wikivoyage and Fandom; not loaded for other wikis."""

import re

from bertwright.corpus.wikitext.templates import arguments, template_key
from bertwright.corpus.wikitext.wrapped_prose import is_prose

_FEWEST, _LONGEST = 6, 12
"""Words of prose in a box, and their mean length: text without spaces is in another language than most wikis are."""
_ADDRESS = re.compile(r"\[?(?:https?:)?//[^\s\]]++")
_LETTER = re.compile(r"[^\W\d_]")
_SEVERAL_WORDS = re.compile(r"\S\s+\S+\s+\S+\s+\S")
# Sizes, places, colours, and the scan that a page is of.
_STYLE = re.compile(
    r"""[\w.-]+\s*: | [\d.]+\s*(?:em|px|%|pt)\Z | (?:left|right|center|top|bottom|block|none)\Z
      | .*\.(?:djvu?|pdf|tiff?|jpe?g|png|gif|svg|webp)(?:/\w+)?\Z""",
    re.VERBOSE | re.IGNORECASE,
)
# The beginning of a chapter: its first letter and the rest of its word.
_INITIAL, _REST = re.compile(r"[\"'“”„«‘’]{0,2}[^\W\d_]\Z"), re.compile(r"[’']?[^\W\d_]")
# A code of a country or region, an item of Wikidata, an address on the web.
_CODE = re.compile(r"[A-Z]{2,3}(?:-\w+)?|Q\d+|.*(?:://|www\.).*", re.DOTALL)


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


def box_text(values: list[str]) -> str:
    """The prose of a box on a wiki of Fandom as paragraphs, given the arguments of a call that is alone on its lines.

    Such a wiki has templates of its own for much of its text, what characters say and what things are for, in
    arguments with names.
    """
    named = (value for key, value in arguments(values).items() if not key.isdecimal() and key.lower() != "reason")
    texts = [value for value in named if _has_spaces(value) and is_prose(_ADDRESS.sub("", value))]
    return "\n\n".join(["", *dict.fromkeys(texts), ""]) if texts else ""


def _has_spaces(text: str) -> bool:
    words = len(text.split())
    return words >= _FEWEST and len(text) <= words * _LONGEST


def _is_name(text: str) -> bool:
    """Whether an argument may name a place: no type of places, code, number, address on the web or description."""
    letter = _LETTER.search(text)
    return letter is not None and not (letter[0].islower() or _CODE.fullmatch(text))


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
