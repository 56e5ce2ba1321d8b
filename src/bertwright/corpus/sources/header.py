"""The header of a MediaWiki XML export, which describes the wiki."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote
from xml.parsers import expat

from bertwright.corpus.errors import SourceError, damaged

_WIKIMEDIA = re.compile(r"//[^/]*\.(wiki(?:pedia|source|news|books|quote|versity|voyage|media)|wiktionary)\.org/")


@dataclass(frozen=True)
class Header:
    """The header of an export, which describes its wiki; every field may be missing ("")."""

    name: str = ""
    """The wiki's name, e.g. "Wikipedia"."""
    database: str = ""
    """Its short name, e.g. "huwiki"."""
    base: str = ""
    """The address of its main page."""
    language: str = ""
    """Its content language (`xml:lang`)."""
    namespaces: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The wiki's own name of each namespace."""

    @property
    def licence(self) -> str:
        """CC BY-SA for Wikimedia wikis (3.0 until June 2023, then 4.0), but CC BY for Wikinews; unknown for others,
        because exports do not say."""
        wiki = _WIKIMEDIA.search(self.base)
        return "unknown" if wiki is None else "CC BY" if wiki[1] == "wikinews" else "CC BY-SA"

    def url(self, title: str) -> str:
        """The URL of a page, built as MediaWiki builds it; "" if the wiki's address is unknown."""
        path = quote(title.replace(" ", "_"), safe="/:@!$*,;()")
        return f"{self.base.rsplit('/', 1)[0]}/{path}" if self.base else ""


def parse_header(data: bytes, path: Path) -> Header:
    """Parse the data before the first page. Raises `SourceError` for a document type or malformed XML."""
    elements: list[str] = []
    facts: dict[str, str] = {}
    names: dict[int, tuple[str, ...]] = {}
    key = text = ""

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal key, text
        elements.append(name)
        key, text = attributes.get("key", ""), ""
        if name == "mediawiki":
            facts["language"] = attributes.get("xml:lang", "")

    def characters(value: str) -> None:
        nonlocal text
        text += value

    def end(name: str) -> None:
        elements.pop()
        if name == "namespace" and text:
            names[int(key)] = (text,)
        elif elements[-1:] == ["siteinfo"]:
            facts[name] = text.strip()

    def doctype(*_: object) -> None:
        raise SourceError(
            f"{path} declares a document type. MediaWiki exports never do, so such files are not accepted. Give an "
            "unchanged export."
        )

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = characters, doctype
    try:
        parser.Parse(data.removeprefix(b"\xef\xbb\xbf").lstrip(), False)
    except (expat.ExpatError, ValueError) as error:
        raise damaged(path, data, 0, error) from error
    name, database, base, language = (facts.get(key, "") for key in ("sitename", "dbname", "base", "language"))
    return Header(name, database, base, language, names)
