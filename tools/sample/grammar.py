"""Sentences from patterns: slots are filled from the world, inflected, and made to agree.

A pattern is a line of `sentences.hu.txt` or `sentences.en.txt`; its marks are explained at the top of the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.sample import english, hungarian
from tools.sample.draws import Draws
from tools.sample.world import Row, Tables, word

_SLOT = re.compile(r"\{(?P<root>[a-z]+)(?P<nth>2?)(?P<path>(?:\.[a-z]+)*)(?P<mark>[*!]?)(?::(?P<suffix>[a-z]+))?\}")
_AGREEMENT = re.compile(r"\[([^\[\]|]*)\|([^\[\]|]*)\]")
_CHOICE = re.compile(r"\(([^()]*\|[^()]*)\)")
_ARTICLE = re.compile(r"@ (?=(?P<open>\[\[(?:[^\]|]*\|)?|''')?(?P<word>\w+))")
_FIRST_LETTER = re.compile(r"^(\W*(?:\[\[[^\]|]*\||\[\[)?\W*)(\w)")


@dataclass(frozen=True)
class Language:
    """What differs between languages in a pattern: noun endings, the name of the plural, the article."""

    code: str
    suffixed: Callable[[str, str], str]
    plural: str
    article: Callable[[str], str]


HUNGARIAN = Language("hu", hungarian.suffixed, "k", hungarian.article)
ENGLISH = Language("en", english.suffixed, "s", english.article)
LANGUAGES = {language.code: language for language in (HUNGARIAN, ENGLISH)}


@dataclass
class Grammar:
    """Writes sentences of one language about one world; `links` are the words that have an article."""

    language: Language
    tables: Tables
    draws: Draws
    links: set[str] = field(default_factory=set)

    def sentence(self, pattern: str, topic: Mapping[str, Row], unlinked: set[str]) -> str:
        """Return one sentence of wikitext.

        `topic` sets the things that the article is about; other slots are filled at random. A word in `unlinked` may
        become a link, and is then removed from the set.
        """
        coin = self.draws.below(2)
        scene = dict(topic)
        text = _CHOICE.sub(lambda match: self.draws.one(match[1].split("|")), pattern)
        text = _AGREEMENT.sub(lambda match: match[1 + coin], text)
        text = _SLOT.sub(lambda match: self._filled(match, scene, coin, unlinked), text)
        text = _ARTICLE.sub(lambda match: self.language.article(match["word"]) + " ", text)
        return _FIRST_LETTER.sub(lambda match: match[1] + match[2].upper(), text, count=1)

    def _filled(self, slot: re.Match[str], scene: dict[str, Row], coin: int, unlinked: set[str]) -> str:
        value: Row | str = self._thing(slot["root"], slot["nth"], scene)
        for step in slot["path"].split(".")[1:]:
            assert isinstance(value, dict)
            value = value[step]
        lemma = _AGREEMENT.sub(lambda match: match[1 + coin], word(value))
        suffix = slot["suffix"] or ""
        if suffix in hungarian.PLACES:
            assert isinstance(value, dict)
            suffix = hungarian.PLACES[suffix][word(value["kind"])]
        if slot["mark"] == "*" and coin:
            suffix = self.language.plural + suffix
        form = self.language.suffixed(lemma, suffix)
        if slot["mark"] == "!":
            return f"'''{form}'''"
        if lemma in unlinked and self.draws.below(3) == 0:
            unlinked.discard(lemma)
            return link(lemma, form)
        return form

    def _thing(self, table: str, nth: str, scene: dict[str, Row]) -> Row:
        """Return the row for a slot: from the topic or drawn earlier; else draw one that differs from the first."""
        if table + nth not in scene:
            others = [row for row in self.tables[table] if row is not scene.get(table)]
            scene[table + nth] = self.draws.one(others)
        return scene[table + nth]


def link(title: str, form: str) -> str:
    """Return a wiki link to `title` shown as `form`, with the ending outside the brackets if possible."""
    return f"[[{title}]]{form[len(title) :]}" if form.startswith(title) else f"[[{title}|{form}]]"


def patterns(language: str) -> dict[str, list[str]]:
    """Return the patterns of a language by section name ("town.open", "town", ...)."""
    sections: dict[str, list[str]] = {}
    path = Path(__file__).parent / f"sentences.{language}.txt"
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            lines = sections.setdefault(line[2:], [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return sections
