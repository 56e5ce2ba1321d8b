"""Patterns of the template table, which render a template call as text. `templates.toml` explains them at its top."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bertwright.core.errors import DataError

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
