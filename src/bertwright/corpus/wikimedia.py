"""The names of Wikimedia's databases ("huwiki", "nlwiktionary", "zh_yuewiki") and where their wikis are."""

from __future__ import annotations

import re

PROJECTS = {
    "wiki": "wikipedia",
    "wiktionary": "wiktionary",
    "wikibooks": "wikibooks",
    "wikinews": "wikinews",
    "wikiquote": "wikiquote",
    "wikisource": "wikisource",
    "wikiversity": "wikiversity",
    "wikivoyage": "wikivoyage",
}
"""Its projects with a wiki of each language: the end of the database's name, and the domain."""
_NAME = re.compile(rf"([a-z][a-z0-9_]*?)({'|'.join(PROJECTS)})")
# Wikis without a language of their own, whose databases end as those of Wikipedias do.
_OTHERS = {
    "commons": "commons.wikimedia.org",
    "incubator": "incubator.wikimedia.org",
    "mediawiki": "www.mediawiki.org",
    "meta": "meta.wikimedia.org",
    "sources": "wikisource.org",
    "species": "species.wikimedia.org",
    "wikidata": "www.wikidata.org",
}


def split_database(name: str) -> tuple[str, str] | None:
    """The language, as the database spells it ("zh_yue"), and the ending that names the project; None for another
    name."""
    match = _NAME.fullmatch(name)
    return (match[1], match[2]) if match else None


def wiki_address(database: str) -> str:
    """The address that a title is appended to, such as "https://hu.wikipedia.org/wiki/"; "" for a name that is none of
    Wikimedia's."""
    if (parts := split_database(database)) is None:
        return ""
    language, project = parts
    host = f"{language.replace('_', '-')}.{PROJECTS[project]}.org"
    return f"https://{_OTHERS.get(language, host) if project == 'wiki' else host}/wiki/"
