"""Writes single values as TOML."""

from __future__ import annotations

import json
from typing import Any

_LATE_CONTROLS = {point: f"\\u{point:04x}" for point in range(0x7F, 0xA0)}


def value_text(value: Any) -> str:
    """Return a value in TOML syntax."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {value_text(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    # JSON leaves these control characters as they are; TOML forbids the first, and a terminal may obey the others.
    return json.dumps(value, ensure_ascii=False).translate(_LATE_CONTROLS)
