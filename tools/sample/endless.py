"""Two pages too long for a document filter: one has too many sentences, the other too many words."""

from __future__ import annotations

from itertools import cycle, islice

from tools.sample.page import Page

_DAY = "Reggel a vízmérce a szokásos állást mutatta. Este sem változott semmi a folyón."
_DAYS = 520
_GUESTS = ("róka", "medve", "nyúl", "gólya", "farkas", "borz", "szarvas")
_VERSE = "Jött a {}, leült a kút mellé, ivott a hideg vízből, megkérdezte, ki lakik a házban, azután lassan továbbment."
_VERSES = 640


def endless_pages() -> list[Page]:
    """A gauge keeper's diary (over 1000 sentences) and a tale without end (over 10 000 words)."""
    tale = "\n\n".join(_VERSE.format(guest) for guest in islice(cycle(_GUESTS), _VERSES))
    return [
        Page("Egy vízmérce naplója", 0, "\n\n".join([_DAY] * _DAYS)),
        Page("A vég nélküli mese", 0, tale),
    ]
