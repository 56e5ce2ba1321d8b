"""Parses JSON with bounded nesting and numbers: a file may come from anywhere, and Python's parser has no limits."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 64
"""Maximum nesting depth of lists and objects."""
_MAX_DIGITS = 20
"""Maximum number of digits of an integer: those of 2^64."""
_SURROGATES = re.compile("[\ud800-\udfff]")


def parse_json(data: bytes | str, known: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Parse JSON; `ValueError` if it is invalid, nested deeper than `MAX_DEPTH`, or has numbers that are too large.

    Integers may have 20 digits; floats must be finite. `known` is called with each object and may replace it. NaN and
    the infinities that Python writes are accepted.
    """
    try:
        value = json.loads(data, object_hook=known, parse_int=_integer, parse_float=_number)
    # The parser itself recurses before the depth can be checked.
    except RecursionError:
        raise _too_deep() from None
    refuse_depth(value)
    return value


def refuse_depth(value: Any) -> None:
    """Raise `ValueError` if lists and objects are nested deeper than `MAX_DEPTH`."""
    # Level by level: a recursive function would fail at the very depth that must be refused.
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


def without_surrogates(text: str) -> str:
    """`text` with U+FFFD for every lone surrogate: JSON can contain one (`"\\ud800"`), UTF-8 cannot."""
    return _SURROGATES.sub("\ufffd", text)


def _too_deep() -> ValueError:
    return ValueError(f"it is nested deeper than {MAX_DEPTH} levels")


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"the number {digits[:_MAX_DIGITS]}... is too large")
    return int(digits)


def _number(digits: str) -> float:
    # Python parses 1e999 as infinity, and every sum with it would be infinite.
    if not math.isfinite(value := float(digits)):
        raise ValueError(f"the number {digits[:_MAX_DIGITS]} is too large")
    return value


def json_number(value: Any) -> Any:
    """Replace NaN and infinity, which JSON lacks, by null; they are shown as NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
