"""A value that a tiny scale replaces in a recipe, and why."""

from __future__ import annotations

from typing import Any, NamedTuple


class Replacement(NamedTuple):
    """A key, its new value, and the reason."""

    key: str
    """The dotted key."""
    value: Any
    """The value in TOML's types; None: the key is removed, and its default applies."""
    reason: str


def format_value(value: Any) -> str:
    """Return a value of a recipe for a line of text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict) and "kind" in value:
        return str(value["kind"])
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return ", ".join(str(item.get("path", item)) for item in value)
    return "nothing" if value in (None, "", [], {}) else str(value)
