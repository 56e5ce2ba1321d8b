"""Pages that stand for another page."""

import re

from bertwright.corpus.wikitext.site import Site

_REDIRECT = re.compile(r"\s*#[^\s#\[\]:]+\s*:?\s*\[\[([^\[\]|#\n]+)")


def redirect_target(wikitext: str, site: Site) -> str | None:
    """The title a redirect page leads to, without its section; None for any other page.

    Every wiki has keywords of its own (#REDIRECT, #ÁTIRÁNYÍTÁS, ...); a page that begins with any
    "#word [[title" is one. The wiki's own language prefix is not part of a title.
    """
    match = _REDIRECT.match(wikitext)
    if match is None:
        return None
    return match[1].strip().removeprefix(":").removeprefix(f"{site.language}:")
