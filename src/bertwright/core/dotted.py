"""Dotted keys such as `train.phases.0.steps`, which name a place in the nested values of a recipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def child_key(key: str, name: object) -> str:
    """Return the dotted key of a member of the value at `key`; "" is the whole."""
    return f"{key}.{name}" if key else str(name)


def value_at(values: Any, dotted: str) -> Any:
    """Return the value at a dotted key; None if there is no such section or element."""
    for part in dotted.split("."):
        if isinstance(values, list):
            values = {str(index): value for index, value in enumerate(values)}
        values = values.get(part) if isinstance(values, dict) else None
    return values


def elements(values: Any, dotted: str, key: str = "") -> Iterator[str]:
    """The keys that a dotted one stands for which leaves out the numbers of elements: of each element of the lists in
    `values`, which is the value at `key`."""
    part, _, rest = dotted.partition(".")
    if isinstance(values, list) and not part.isdecimal():
        for number, element in enumerate(values):
            yield from elements(element, dotted, child_key(key, number))
    elif rest:
        yield from elements(value_at(values, part), rest, child_key(key, part))
    else:
        yield child_key(key, part)


def overlap(one: str, other: str) -> bool:
    """Whether setting one key also sets the other: they are equal, or one contains the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def leaves(value: Any, key: str = "", *, whole_lists: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the dotted key and value of everything in nested values that contains nothing else; `key` is that of
    `value` itself, and with `whole_lists` a list is one value."""
    if isinstance(value, Mapping):
        inner: Iterable[tuple[object, Any]] = value.items()
    elif isinstance(value, list | tuple) and not whole_lists:
        inner = enumerate(value)
    else:
        yield key, value
        return
    for name, child in inner:
        yield from leaves(child, child_key(key, name), whole_lists=whole_lists)


def texts(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the dotted key and value of every string in nested values."""
    return ((key, text) for key, text in leaves(value) if isinstance(text, str))
