"""Settings as flat names and texts, for programs that show them as a list."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return each setting by its dotted key, as in a recipe; lists of tables are numbered."""
    found: dict[str, str] = {}
    for name, value in settings.items():
        key = f"{prefix}{name}"
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            value = {str(number): item for number, item in enumerate(value)}
        if isinstance(value, Mapping):
            found |= flat(value, f"{key}.")
        else:
            found[key] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return found
