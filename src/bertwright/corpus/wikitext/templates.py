"""Templates that stand for words inside a sentence, rendered by tables of plain patterns.

The tables are the files of the folder `templates`: one for each language, `any.toml`, which explains the patterns at
its top, and for other projects "wiktionary.toml" and, for one wiki, "frwiktionary.toml"; support for a template of a
wiki takes one line there or in a user's own file. A template that is not in a table, or only in `any.toml`, is expanded
if the dump defines it as plain text (`definitions`); others are rendered by the form of their call (`unknown_calls`) or
dropped with their content.
"""

import re
import tomllib
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.errors import DataError
from bertwright.core.files import read_text
from bertwright.core.toml import MAX_BYTES
from bertwright.corpus.characters import compose
from bertwright.corpus.wikis import wikis
from bertwright.corpus.wikitext.locales import Locale, locale_of
from bertwright.corpus.wikitext.marked_words import LOST
from bertwright.corpus.wikitext.patterns import Pattern

_FOLDER = Path(__file__).with_suffix("")
_ANY = "any"
_GENERAL = _FOLDER / "any.toml"
# Wikis that use another's templates.
_LIKE = {"simple": "en", "arz": "ar", "zh-yue": "zh"}
_DISAMBIGUATION, _MENTIONS, _LANGUAGES, _SAME = "disambiguation", "mentions", "languages", "same"
_ALIKE = {"silent": "", "verbatim": "{0}", "computed": LOST}
"""The pattern of all templates that a key of a table lists."""
_NAMED = re.compile(r"\s*([^=\[\]<>{}\n]{1,40}?)\s*=")
_ONE_I = str.maketrans("İı", "ii")


class Table(NamedTuple):
    """A file of templates and its text when it was read: for workers the file may have changed, or be missing."""

    path: Path
    text: str


@dataclass(frozen=True)
class Templates:
    """The templates of the tables that apply to one wiki; built by `templates_of`."""

    patterns: Mapping[str, tuple[Pattern, ...]]
    families: tuple[tuple[str, str, tuple[Pattern, ...]], ...]
    """What stands before and after the "*" in the names of a family, and its patterns; the wiki's own come first."""
    disambiguation: frozenset[str]
    """The names, as `template_key` spells them, that mark a disambiguation page."""
    mentions: frozenset[str] = frozenset()
    """The names, spelled so, of templates that print a word as a word, as in a list of synonyms."""
    general: frozenset[str] = frozenset()
    """The names, spelled so, and the families ("lang-*") that print words by the table for all wikis."""

    def know(self, name: str) -> bool:
        """Whether a table has the template."""
        return self._patterns_of(name) is not None

    def is_general(self, name: str) -> bool:
        """Whether only the table for all wikis has the template, so that the wiki's own definition is truer."""
        key = template_key(name)
        if key in self.patterns or not (found := self._patterns_of(name)):
            return key in self.general
        _, start, end = found
        return f"{key[:start]}*{key[len(key) - end :]}" in self.general

    def text(self, call: str, title: str = "") -> str | None:
        """The text of a call on the page `title`, given the text between its braces; None if no pattern matches."""
        name, *values = call.split("|")
        found = self._patterns_of(name)
        if found is None:
            return None
        patterns, start, end = found
        given = arguments([name.partition(":")[2], *values] if ":" in name else values)
        name = " ".join(name.replace("_", " ").split())
        given["0"] = name[start : len(name) - end]
        given["PAGENAME"] = title
        return next((text for way in patterns if (text := way(given)) is not None), None)

    def _patterns_of(self, name: str) -> tuple[tuple[Pattern, ...], int, int] | None:
        """The patterns of a name, and how many characters of it stand before and after what its "*" stands for."""
        key = template_key(name)
        if ":" in key:
            ways = self.patterns.get(key.partition(":")[0] + ":*")
            return (ways, 0, 0) if ways else None
        if key in self.patterns:
            return self.patterns[key], 0, 0
        # One line of the table serves {{lang-hu|…}}, {{lang-uk|…}} and all others of the family.
        if key.startswith(self._starts):
            for start, end, ways in self.families:
                if _is_in(key, start, end):
                    return ways, len(start), len(end)
        return None

    @cached_property
    def _starts(self) -> tuple[str, ...]:
        return tuple({start for start, _, _ in self.families})


def _is_in(key: str, start: str, end: str) -> bool:
    return key.startswith(start) and key.endswith(end) and len(key) > len(start) + len(end)


def read_table(path: Path) -> Table:
    """Read the table in a file. Raises `DataError` if it cannot be read as text."""
    try:
        return Table(path, compose(read_text(path, MAX_BYTES, "utf-8-sig")))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


@cache
def templates_of(language: str, extra: Table | None = None, project: str = "") -> Templates:
    """The templates of a wiki in `language`, from the built-in tables and the user's `extra`, which takes precedence.

    In each, the lines of the language override those of [any], those of the `project` ("wiktionary") override both, and
    those of the wiki ("frwiktionary") all others. Raises `DataError` if `extra` is invalid.
    """
    patterns: dict[str, tuple[Pattern, ...]] = {}
    families: list[tuple[str, str, tuple[Pattern, ...]]] = []
    special: dict[str, set[str]] = {_DISAMBIGUATION: set(), _MENTIONS: set()}
    general: set[str] = set()
    locale = locale_of(language)
    if _LIKE.get(language, language) == "en":  # the names in wikis.tsv are English
        locale = replace(locale, languages=wikis())
    # Later tables take precedence, and so do their families over single names of earlier ones.
    for path, lines in _tables_of(language, project, extra):
        own: dict[str, tuple[Pattern, ...]] = {}
        named = dict(line.split(" ", 1) for line in lines.get(_LANGUAGES, ()))
        locale = replace(locale, languages={**locale.languages, **named}) if named else locale
        same = _same(path, lines.get(_SAME, ()), patterns)
        patterns |= {name: patterns[key] for name, key in same.items()}
        general |= {name for name, key in same.items() if key in general}
        for names, value in lines.items():
            ways = [value] if isinstance(value, str) else value
            if names in special:
                special[names].update(map(template_key, ways))
                continue
            if names in (_LANGUAGES, _SAME):
                continue
            if names in _ALIKE:
                keys, ways = ways, [_ALIKE[names]]
            else:
                keys = names.split("|")
                if path == _GENERAL:
                    general.update(map(template_key, keys))
            own |= dict.fromkeys(map(template_key, keys), _parse(path, names, ways, locale))
        for key, found in own.items():
            if key.count("*") == 1 and not key.endswith(":*"):
                start, end = key.split("*")
                families.insert(0, (start, end, found))
                patterns = {name: ways for name, ways in patterns.items() if not _is_in(name, start, end)}
        patterns |= own
        if path != _GENERAL:
            general -= own.keys()
    return Templates(patterns, tuple(families), *map(frozenset, (*special.values(), general)))


def _tables_of(language: str, project: str, extra: Table | None) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The lines that apply to a wiki, each with their file, and the user's own last."""
    names = [_ANY, language, *([project, language + project] if project else [])]
    for name in [_ANY, like := _LIKE.get(language, language), *([project, like + project] if project else [])]:
        # A code has no path in it, but may be any word.
        if (path := _FOLDER / f"{name}.toml").is_file():
            yield path, tomllib.loads(path.read_text(encoding="utf-8"))
    if extra:
        lines = _lines(extra)
        yield from ((extra.path, lines[name]) for name in names if name in lines)


@lru_cache(maxsize=4096)
def template_key(name: str) -> str:
    """A template's name in the form used for comparison: lower case, single spaces, and one i, because on Turkish wikis
    {{il}} is the page "İl", and {{ızgara}} the page "Izgara"."""
    return " ".join(name.replace("_", " ").split()).translate(_ONE_I).lower()


def arguments(values: list[str]) -> dict[str, str]:
    """The arguments of a call by name, with the unnamed ones numbered from "1"."""
    named = {}
    position = 0
    for value in values:
        name = _NAMED.match(value) if "=" in value else None
        if name:
            named[name[1]] = value[name.end() :].strip()
        else:
            position += 1
            named[str(position)] = value.strip()
    return named


def _same(path: Path, lines: Sequence[str], known: Container[str]) -> dict[str, str]:
    """The wiki's own names of templates that earlier tables have, as redirects give them: "nowrap: murdmata"."""
    found: dict[str, str] = {}
    for line in lines:
        name, _, here = line.partition(": ")
        if not here or (key := template_key(name)) not in known:
            raise DataError(
                f'{path}: "same" has {line!r}; a template of an earlier table, ": " and names are expected.'
            )
        found |= dict.fromkeys(map(template_key, here.split("|")), key)
    return found


def _parse(path: Path, name: str, ways: list[str], locale: Locale) -> tuple[Pattern, ...]:
    try:
        return tuple(Pattern.parse(way, locale) for way in ways)
    except DataError as error:
        raise DataError(f"{path}: {name!r}: {error}") from error


@cache
def _lines(table: Table) -> dict[str, dict[str, Any]]:
    try:
        table_lines = tomllib.loads(table.text)
    except ValueError as error:
        raise _unreadable(table.path, error) from error
    for language, lines in table_lines.items():
        if not isinstance(lines, dict):
            raise DataError(f"{table.path}: {language!r} is outside a table. Move it below [any] or [language].")
        for name, ways in lines.items():
            if not isinstance(ways, str) and not (isinstance(ways, list) and all(isinstance(w, str) for w in ways)):
                raise DataError(
                    f'{table.path}: [{language}] {name!r} is {ways!r}; "pattern" or ["pattern", ...] was expected.'
                )
    return table_lines


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(
        f"cannot read the template table {path}: {error}. The file must be TOML; docs/how-to/clean-text.md shows one."
    )
