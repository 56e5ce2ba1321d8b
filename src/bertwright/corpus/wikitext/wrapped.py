"""The text of templates of a Wikisource that neither the tables nor the dump define.

Nearly all templates in the text of a book only set a part of it in another form: in small capitals, centred, spaced. So
such a call prints its longest unnamed argument; the others are sizes, colours and places.
"""

import re

from bertwright.corpus.wikitext.templates import arguments, template_key

_LETTERS = re.compile(r"[^\W\d_]")
_SEVERAL_WORDS = re.compile(r"\S\s+\S+\s+\S+\s+\S")
_STYLE = re.compile(r"[\w.-]+\s*:|[\d.]+\s*(?:em|px|%|pt)\Z|(?:left|right|center|top|bottom|block|none)\Z")


def wrapped_text(name: str, values: list[str], *, alone: bool) -> str:
    """The text that a call prints; "" if none of its arguments is text. Of a call `alone` on its line, which may be a
    banner, only a text of four words or more."""
    key = template_key(name)
    if not key or key[0] in "#{" or ":" in key:
        return ""
    given = (value for number, value in arguments(values).items() if number.isdecimal())
    text = max((value for value in given if not _STYLE.match(value)), key=len, default="")
    if not _LETTERS.search(text) or (alone and not _SEVERAL_WORDS.search(text)):
        return ""
    return f"\n\n{text}\n\n" if alone else text
