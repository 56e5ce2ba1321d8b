"""Templates that stand for words inside a sentence, repaired from a table of plain patterns.

The table is `templates.toml`; its head explains the patterns, and a wiki gets a template
repaired by adding one line there. A template the table does not name is dropped with its content.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bertwright.core.errors import DataError

_TABLE = Path(__file__).with_suffix(".toml")
_DISAMBIGUATION = "disambiguation"
_ITEM = re.compile(r"\{([^{}]+)\}|([\[\]])|([^{}\[\]]+)")
_NAMED = re.compile(r"\s*([^=\[\]<>{}\n]{1,40}?)\s*=")

Arguments = Mapping[str, str]


@dataclass(frozen=True)
class _Field:
    names: tuple[str, ...]
    allowed: frozenset[str] | None
    shown: bool
    separator: str | None

    def __call__(self, arguments: Arguments) -> str | None:
        """The field's text; None if the call lacks it."""
        if self.separator is not None:
            values = [value for name, value in arguments.items() if name.isdigit() and name != "0"]
            return self.separator.join(filter(None, values)) or None
        value = next((arguments[name] for name in self.names if arguments.get(name)), None)
        if value is None or (self.allowed is not None and value not in self.allowed):
            return None
        return value if self.shown else ""


@dataclass(frozen=True)
class Pattern:
    """One way to write a template's call as text: literals, fields and optional groups."""

    groups: tuple[tuple[bool, tuple[str | _Field, ...]], ...]

    @classmethod
    def parse(cls, source: str) -> "Pattern":
        """Read a pattern as the table's head describes them. Raises DataError where it is wrong."""
        groups: list[tuple[bool, tuple[str | _Field, ...]]] = []
        items: list[str | _Field] = []
        optional = False
        if "".join(match[0] for match in _ITEM.finditer(source)) != source:
            raise DataError(f"template pattern {source!r} has a brace without its partner")
        for field, bracket, literal in _ITEM.findall(source):
            if bracket:
                if optional == (bracket == "["):
                    raise DataError(f"template pattern {source!r}: [groups] are pairs, not nested")
                groups.append((optional, tuple(items)))
                items, optional = [], not optional
            else:
                items.append(_field(field) if field else literal)
        if optional:
            raise DataError(f"template pattern {source!r} has a [ without its ]")
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


def _field(source: str) -> _Field:
    if source.startswith("*"):
        return _Field((), None, True, source[1:])
    names, equals, allowed = source.removeprefix("!").partition("=")
    values = frozenset(allowed.split("/")) if equals else None
    return _Field(tuple(names.split("|")), values, not source.startswith("!"), None)


@dataclass(frozen=True)
class Templates:
    """The table's templates that hold on one wiki; `templates_of` builds it."""

    patterns: Mapping[str, tuple[Pattern, ...]]

    def know(self, name: str) -> bool:
        """Whether the table names the template."""
        return self._found(name) is not None

    def text(self, call: str) -> str:
        """The text of a call, given what stands between its braces; "" where no pattern fits."""
        name, *values = call.split("|")
        patterns = self._found(name)
        if patterns is None:
            return ""
        arguments = _arguments([name.partition(":")[2], *values] if ":" in name else values)
        return next((text for way in patterns if (text := way(arguments)) is not None), "")

    def _found(self, name: str) -> tuple[Pattern, ...] | None:
        key = template_key(name)
        if ":" in key:
            return self.patterns.get(key.partition(":")[0] + ":*")
        if key in self.patterns or "-" not in key:
            return self.patterns.get(key)
        return self.patterns.get(key.partition("-")[0] + "-*")


@cache
def templates_of(language: str) -> Templates:
    """The templates of a wiki in `language`: the table's [any] and the language's own lines."""
    lines = _table()["any"] | _table().get(language, {})
    return Templates(
        {
            template_key(name): tuple(map(Pattern.parse, [ways] if isinstance(ways, str) else ways))
            for name, ways in lines.items()
            if name != _DISAMBIGUATION
        }
    )


@cache
def disambiguation_names(language: str) -> frozenset[str]:
    """The names, as `template_key` spells them, that mark a disambiguation page on the wiki."""
    tables = (_table()["any"], _table().get(language, {}))
    return frozenset(template_key(name) for lines in tables for name in lines.get(_DISAMBIGUATION, []))


def template_key(name: str) -> str:
    """A template's name as the table compares names: lower case, single spaces."""
    return " ".join(name.replace("_", " ").split()).lower()


def _arguments(values: list[str]) -> dict[str, str]:
    arguments = {}
    position = 0
    for value in values:
        named = _NAMED.match(value)
        if named:
            arguments[named[1]] = value[named.end() :].strip()
        else:
            position += 1
            arguments[str(position)] = value.strip()
    return arguments


@cache
def _table() -> dict[str, dict[str, str | list[str]]]:
    table: dict[str, dict[str, str | list[str]]] = tomllib.loads(_TABLE.read_text("utf-8"))
    return table
