"""A value of a recipe that a tiny scale replaces, and why."""

from __future__ import annotations

from typing import Any, NamedTuple


class Replacement(NamedTuple):
    """A key, the value it has instead, and the reason."""

    key: str
    """Dotted."""
    value: Any
    """As TOML has it; None: the key is left out, and its default applies."""
    reason: str


def spoken(value: Any) -> str:
    """A value of a recipe in a line of text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict) and "kind" in value:
        return str(value["kind"])
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return ", ".join(str(item.get("path", item)) for item in value)
    return "nothing" if value in (None, "", [], {}) else str(value)
