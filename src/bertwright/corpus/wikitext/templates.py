"""Templates that stand for words inside a sentence, rendered by a table of plain patterns.

The table is `templates.toml`, which explains the patterns at its top; support for a template of a wiki takes one
line there or in a user's own file. A template that is not in the table is expanded if the dump defines it as plain
text (`definitions`), else rendered by the form of its call (`unknown_calls`), else dropped with its content.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.errors import DataError
from bertwright.core.files import read_text
from bertwright.core.toml import MAX_BYTES

Arguments = Mapping[str, str]

# No loops, and no conditions beyond groups and choices, so the cost of a call is its length (decision 0014).
_ITEM = re.compile(r"\{([^{}]+)\}|([\[\]])|([^{}\[\]]+)")
_UNNAMED = re.compile(r"([0-9]*)\*(.*)", re.DOTALL)


@dataclass(frozen=True)
class Field:
    """One argument, or the first of several that is present."""

    names: tuple[str, ...]
    allowed: frozenset[str] | None
    """The values that match; None: any."""
    shown: bool

    def __call__(self, arguments: Arguments) -> str | None:
        """The field's text; None if the call lacks it."""
        value = next((arguments[name] for name in self.names if arguments.get(name)), None)
        if value is None or (self.allowed is not None and value not in self.allowed):
            return None
        return value if self.shown else ""


@dataclass(frozen=True)
class Unnamed:
    """All unnamed arguments from number `first` on."""

    first: int
    separator: str

    def __call__(self, arguments: Arguments) -> str | None:
        """The arguments joined, with "_" as a space as in `{{IPAc-en}}`; None if there is none."""
        values = (value for name, value in arguments.items() if name.isdecimal() and int(name) >= self.first)
        return self.separator.join(filter(None, values)).replace("_", " ") or None


@dataclass(frozen=True)
class Pattern:
    """Literals, fields and optional groups."""

    groups: tuple[tuple[bool, tuple[str | Field | Unnamed, ...]], ...]

    @classmethod
    def parse(cls, source: str) -> "Pattern":
        """Parse a pattern. Raises `DataError` if it is invalid."""
        groups: list[tuple[bool, tuple[str | Field | Unnamed, ...]]] = []
        items: list[str | Field | Unnamed] = []
        optional = False
        if "".join(match[0] for match in _ITEM.finditer(source)) != source:
            raise DataError(f"template pattern {source!r} has an unmatched brace; write {{1}} or {{name}}")
        for field, bracket, text in _ITEM.findall(source):
            if bracket:
                if optional == (bracket == "["):
                    raise DataError(f"template pattern {source!r}: [groups] must be paired and must not be nested")
                groups.append((optional, tuple(items)))
                items, optional = [], not optional
            else:
                items.append(_field(field) if field else text)
        if optional:
            raise DataError(f"template pattern {source!r} has a [ without the closing ]")
        return cls((*groups, (False, tuple(items))))

    def __call__(self, arguments: Arguments) -> str | None:
        """The text of a call; None if a field outside the optional groups is missing."""
        written = []
        for optional, items in self.groups:
            texts = [item if isinstance(item, str) else item(arguments) for item in items]
            present = [text for text in texts if text is not None]
            if len(present) == len(texts):
                written += present
            elif not optional:
                return None
        return "".join(written)


def _field(source: str) -> Field | Unnamed:
    if unnamed := _UNNAMED.fullmatch(source):
        return Unnamed(int(unnamed[1] or 1), unnamed[2])
    names, equals, allowed = source.removeprefix("!").partition("=")
    values = frozenset(allowed.split("/")) if equals else None
    return Field(tuple(names.split("|")), values, not source.startswith("!"))


_DISAMBIGUATION, _SILENT = "disambiguation", "silent"
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
    disambiguation: frozenset[str]
    """The names, as `template_key` spells them, that mark a disambiguation page."""

    def know(self, name: str) -> bool:
        """Whether a table has the template."""
        return self._patterns_of(name) is not None

    def text(self, call: str, title: str = "") -> str | None:
        """The text of a call on the page `title`, given the text between its braces; None if no pattern matches."""
        name, *values = call.split("|")
        patterns = self._patterns_of(name)
        if patterns is None:
            return None
        given = arguments([name.partition(":")[2], *values] if ":" in name else values)
        given["PAGENAME"] = title
        return next((text for way in patterns if (text := way(given)) is not None), None)

    def _patterns_of(self, name: str) -> tuple[Pattern, ...] | None:
        key = template_key(name)
        if ":" in key:
            return self.patterns.get(key.partition(":")[0] + ":*")
        if key in self.patterns:
            return self.patterns[key]
        # One line of the table serves {{lang-hu|…}}, {{lang-uk|…}} and all others of the family.
        kin = (key.partition(mark)[0] + mark + "*" for mark in "-/" if mark in key)
        return next((self.patterns[name] for name in kin if name in self.patterns), None)


def read_table(path: Path) -> Table:
    """Read the table in a file. Raises `DataError` if it cannot be read as text."""
    try:
        return Table(path, read_text(path, MAX_BYTES, "utf-8-sig"))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


@cache
def templates_of(language: str, extra: Table | None = None) -> Templates:
    """The templates of a wiki in `language`, from the built-in table and the user's `extra`, which takes precedence.

    In each table, the lines of the language override those of [any]. Raises `DataError` if `extra` is invalid.
    """
    patterns: dict[str, tuple[Pattern, ...]] = {}
    disambiguation: set[str] = set()
    # The user's own lines come last, so they take precedence.
    built_in = read_table(Path(__file__).with_suffix(".toml"))
    for table in (built_in, extra) if extra else (built_in,):
        for lines in (_lines(table).get("any", {}), _lines(table).get(language, {})):
            for name, value in lines.items():
                ways = [value] if isinstance(value, str) else value
                if name == _DISAMBIGUATION:
                    disambiguation.update(map(template_key, ways))
                elif name == _SILENT:
                    patterns |= dict.fromkeys(map(template_key, ways), _parse(table.path, name, [""]))
                else:
                    patterns[template_key(name)] = _parse(table.path, name, ways)
    return Templates(patterns, frozenset(disambiguation))


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
        name = _NAMED.match(value)
        if name:
            named[name[1]] = value[name.end() :].strip()
        else:
            position += 1
            named[str(position)] = value.strip()
    return named


def _parse(path: Path, name: str, ways: list[str]) -> tuple[Pattern, ...]:
    try:
        return tuple(map(Pattern.parse, ways))
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
    return DataError(f"cannot read the template table {path}: {error}. The file must be TOML, like templates.toml.")
