"""Dotted keys such as `train.phases.0.steps`, which name a place in the nested values of a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def below(key: str, name: object) -> str:
    """Return the dotted key of a member of the value at `key`; "" is the whole."""
    return f"{key}.{name}" if key else str(name)


def value_at(values: Any, dotted: str) -> Any:
    """Return the value at a dotted key; None if there is no such section or element."""
    for part in dotted.split("."):
        if isinstance(values, list):
            values = {str(index): value for index, value in enumerate(values)}
        values = values.get(part) if isinstance(values, dict) else None
    return values


def overlap(one: str, other: str) -> bool:
    """Whether setting one key also sets the other: they are equal, or one contains the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the dotted key and value of every string in nested values; `key` is that of `value` itself."""
    if isinstance(value, Mapping | list | tuple):
        for name, child in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from texts(child, below(key, name))
    elif isinstance(value, str):
        yield key, value
