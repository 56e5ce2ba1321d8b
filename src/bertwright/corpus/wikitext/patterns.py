"""Patterns of templates: what a call prints, as literals, fields and optional groups.

`templates/any.toml` explains them. There are no loops, and no conditions beyond groups and choices, so the cost of a
call is proportional to its length (decision 0014).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bertwright.core.errors import DataError
from bertwright.corpus.wikitext.forms import FORMS, Form
from bertwright.corpus.wikitext.locales import Locale

Arguments = Mapping[str, str]

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
        for name in self.names:
            if value := arguments.get(name):
                break
        else:
            return None
        if self.allowed is not None and value not in self.allowed:
            return None
        return value if self.shown else ""


@dataclass(frozen=True)
class Formed:
    """One or several arguments in a form of the language."""

    fields: tuple[Field, ...]
    form: Form
    locale: Locale

    def __call__(self, arguments: Arguments) -> str | None:
        """The text in its form; None if the call lacks all of the arguments, or they do not fit the form."""
        values = [field(arguments) or "" for field in self.fields]
        return self.form(values, self.locale) if any(values) else None


@dataclass(frozen=True)
class Unnamed:
    """All unnamed arguments from number `first` on."""

    first: int
    separator: str

    def __call__(self, arguments: Arguments) -> str | None:
        """The arguments joined, with "_" as a space as in `{{IPAc-en}}`; None if there is none."""
        values = (value for name, value in arguments.items() if name.isdecimal() and int(name) >= self.first)
        return self.separator.join(filter(None, values)).replace("_", " ") or None


Item = str | Field | Formed | Unnamed


@dataclass(frozen=True)
class Pattern:
    """Literals, fields and optional groups."""

    groups: tuple[tuple[bool, tuple[Item, ...]], ...]

    @classmethod
    def parse(cls, source: str, locale: Locale) -> "Pattern":
        """Parse a pattern; its forms are those of `locale`. Raises `DataError` if it is invalid."""
        groups: list[tuple[bool, tuple[Item, ...]]] = []
        items: list[Item] = []
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
                items.append(_item(field, locale) if field else text)
        if optional:
            raise DataError(f"template pattern {source!r} has a [ without the closing ]")
        return cls((*groups, (False, tuple(items))))

    def __call__(self, arguments: Arguments) -> str | None:
        """The text of a call; None if a field outside the optional groups is missing."""
        written: list[str] = []
        for optional, items in self.groups:
            texts = []
            for item in items:
                text = item if isinstance(item, str) else item(arguments)
                if text is None:
                    break
                texts.append(text)
            else:
                written += texts
                continue
            if not optional:
                return None
        return "".join(written)


def _item(source: str, locale: Locale) -> Item:
    if unnamed := _UNNAMED.fullmatch(source):
        return Unnamed(int(unnamed[1] or 1), unnamed[2])
    names, colon, form = source.rpartition(":")
    if not colon or "=" in source:
        return _field(source)
    if form not in FORMS:
        raise DataError(f"template pattern {{{source}}}: there is no form {form!r}; the forms are {', '.join(FORMS)}")
    return Formed(tuple(map(_field, names.split("/"))), FORMS[form], locale)


def _field(source: str) -> Field:
    names, equals, allowed = source.removeprefix("!").partition("=")
    values = frozenset(allowed.split("/")) if equals else None
    return Field(tuple(names.split("|")), values, not source.startswith("!"))
