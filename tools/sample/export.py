"""Write pages as XML in the MediaWiki export schema 0.11, as in Wikimedia's article dumps."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from xml.sax.saxutils import escape, quoteattr

from tools.sample.page import Page

_SCHEMA = "http://www.mediawiki.org/xml/export-0.11/"
_NAMESPACES = {
    -2: "Média", -1: "Speciális", 0: "", 1: "Vita", 2: "Szerkesztő", 3: "Szerkesztővita",
    4: "Mintapédia", 5: "Mintapédia-vita", 6: "Fájl", 7: "Fájlvita", 8: "MediaWiki", 9: "MediaWiki-vita",
    10: "Sablon", 11: "Sablonvita", 12: "Segítség", 13: "Segítségvita", 14: "Kategória", 15: "Kategóriavita",
    100: "Portál", 101: "Portálvita", 828: "Modul", 829: "Modulvita",
}  # fmt: skip
_BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def _namespace(key: int, name: str) -> str:
    inside = f">{name}</namespace>" if name else " />"
    return f'      <namespace key="{key}" case="first-letter"{inside}\n'


HEADER = f"""\
<mediawiki xmlns="{_SCHEMA}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="{_SCHEMA} http://www.mediawiki.org/xml/export-0.11.xsd" version="0.11" xml:lang="hu">
  <siteinfo>
    <sitename>Mintapédia</sitename>
    <dbname>mintawiki</dbname>
    <base>https://minta.example.org/wiki/Kezd%C5%91lap</base>
    <generator>bertwright sample</generator>
    <case>first-letter</case>
    <namespaces>
{"".join(_namespace(key, name) for key, name in _NAMESPACES.items())}\
    </namespaces>
  </siteinfo>
"""
TAIL = "</mediawiki>\n"


def page_xml(number: int, page: Page) -> str:
    """Return one `<page>` element; its ids and timestamp are derived from `number`."""
    text = page.text.encode("utf-8")
    digest = _base36(hashlib.sha1(text, usedforsecurity=False).digest())
    redirect = f"    <redirect title={quoteattr(page.redirect)} />\n" if page.redirect else ""
    time = (_BEGIN + timedelta(hours=7 * number)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"""\
  <page>
    <title>{escape(page.title)}</title>
    <ns>{page.namespace}</ns>
    <id>{3 * number}</id>
{redirect}    <revision>
      <id>{7 * number + 5000}</id>
      <parentid>{7 * number + 4000}</parentid>
      <timestamp>{time}</timestamp>
      <contributor>
        <username>Minta</username>
        <id>1</id>
      </contributor>
      <origin>{7 * number + 5000}</origin>
      <model>wikitext</model>
      <format>text/x-wiki</format>
      <text bytes="{len(text)}" sha1="{digest}" xml:space="preserve">{escape(page.text)}</text>
      <sha1>{digest}</sha1>
    </revision>
  </page>
"""


def _base36(digest: bytes) -> str:
    """Return a SHA-1 in MediaWiki's notation: 31 digits of base 36."""
    value, digits = int.from_bytes(digest, "big"), ""
    while value:
        value, digit = divmod(value, 36)
        digits = _DIGITS[digit] + digits
    return digits.rjust(31, "0")
