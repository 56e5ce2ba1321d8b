"""JSON values of bounded depth and size: a file may come from anywhere, and the parser of Python takes what it gets."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 64
"""Most levels of lists and objects in each other."""
_MAX_DIGITS = 20
"""Most digits of a whole number: those of 2^64."""


def parse_json(data: bytes | str, known: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """A JSON value; a `ValueError` when it is none, is nested deeper than `MAX_DEPTH`, or has numbers beyond 64 bits.

    `known` is given each object. NaN and the infinities that Python writes are read.
    """
    try:
        value = json.loads(data, object_hook=known, parse_int=_integer, parse_float=_number)
    # The parser recurses by itself before the depth can be looked at.
    except RecursionError:
        raise _too_deep() from None
    refuse_depth(value)
    return value


def refuse_depth(value: Any) -> None:
    """Raise `ValueError` when lists and objects stand in each other deeper than `MAX_DEPTH`."""
    # Level by level, as a function that calls itself would fail at the very depth that is to be refused.
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> ValueError:
    return ValueError(f"it is nested deeper than {MAX_DEPTH} levels")


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"the number {digits[:_MAX_DIGITS]}... is too large")
    return int(digits)


def _number(digits: str) -> float:
    # Python reads 1e999 as infinity, and every sum with it would be infinite.
    if not math.isfinite(value := float(digits)):
        raise ValueError(f"the number {digits[:_MAX_DIGITS]} is too large")
    return value
