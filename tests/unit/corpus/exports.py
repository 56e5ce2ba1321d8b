"""A small export builder: MediaWiki XML from titles and wikitext."""

from xml.sax.saxutils import escape

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="hu">
  <siteinfo>
    <sitename>Wikipédia</sitename>
    <dbname>huwiki</dbname>
    <base>https://hu.wikipedia.org/wiki/Kezd%C5%91lap</base>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="1" case="first-letter">Vita</namespace>
      <namespace key="6" case="first-letter">Fájl</namespace>
      <namespace key="14" case="first-letter">Kategória</namespace>
    </namespaces>
  </siteinfo>
"""
TAIL = "</mediawiki>\n"


def page(number: int, title: str, text: str, *, namespace: int = 0, extra: str = "") -> str:
    return f"""  <page>
    <title>{escape(title)}</title>
    <ns>{namespace}</ns>
    <id>{number}</id>
{extra}    <revision>
      <id>{number + 1000}</id>
      <contributor><username>x</username><id>7</id></contributor>
      <model>wikitext</model>
      <text xml:space="preserve">{escape(text)}</text>
    </revision>
  </page>
"""


def article(number: int) -> str:
    """Wikitext of an article of four paragraphs, different for every number, and not by the number alone."""
    names = [a + b for a in ("bor", "gal", "kem", "lás", "mar", "né", "sol", "tar") for b in ("da", "fő", "hely", "kő")]
    a, b, c, d, e, f = (names[(number * step + number // 7) % len(names)] for step in (1, 3, 5, 7, 9, 11))
    return f"""'''A {number}. híd''' a {a} folyó fölött ível át, és naponta sokan járnak {b} felé rajta.
Három {c} évig épült.

== Története ==
A híd alapkövét {number} {d} munkás tette le tavasszal. A következő {e} nyáron készült el a {f} középső íve.

* Az északi oldalán gyalogosok járnak.
* A déli oldalán kerékpárút vezet.

[[Kategória:Hidak]]
"""
