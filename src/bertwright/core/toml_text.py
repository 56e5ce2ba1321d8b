"""Writes values as TOML, which the standard library only reads; training needs no package for it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, time
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_INDENT = 4
_MAX_LINE = 100
"""A table in a list is written in one line if that has at most so many characters, indentation and comma included."""


def toml_text(values: Mapping[str, Any]) -> str:
    """The TOML document with these values; `TypeError` for a value that TOML does not have, such as None."""
    return _table(values, "", element=False)


def _table(table: Mapping[str, Any], name: str, element: bool) -> str:
    """A table with its header, and the tables inside it after its other values; `element`: it is one of a list."""
    lines = [f"{_key(key)} = {_value(value)}\n" for key, value in table.items() if not _tables(value)]
    inside = [(key, each, isinstance(value, list)) for key, value in table.items() for each in _tables(value)]
    # A header without values of its own says nothing, unless the table is empty.
    if element or (name and (lines or not inside)):
        lines.insert(0, f"[[{name}]]\n" if element else f"[{name}]\n")
    blocks = ["".join(lines)] if lines else []
    for key, each, listed in inside:
        blocks.append(_table(each, f"{name}.{_key(key)}" if name else _key(key), listed))
    return "\n".join(blocks)


def _tables(value: Any) -> list[Mapping[str, Any]]:
    """The tables that get headers of their own: the value, or the elements of a list that do not fit in one line."""
    if isinstance(value, dict):
        return [value]
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return []
    lines = [f"{' ' * _INDENT}{_value(each)}," for each in value]
    return [] if all(len(line) <= _MAX_LINE and "\n" not in line for line in lines) else value


def _value(value: Any, depth: int = 0) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float() | date() | time():
            return str(value)
        case str():
            return _text(value)
        case []:
            return "[]"
        case list():
            outer, inner = (" " * _INDENT * level for level in (depth, depth + 1))
            items = "".join(f"{inner}{_value(each, depth + 1)},\n" for each in value)
            return f"[\n{items}{outer}]"
        case dict():
            items = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items())
            return f"{{ {items} }}" if items else "{}"
    raise TypeError(f"TOML has no value like {value!r}; leave its key out")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    # JSON's escapes are among TOML's, which also wants one for DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
