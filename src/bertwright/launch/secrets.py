"""What may not stand in the description of a job, which is printed, kept with the run, and shown to others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bertwright.core.secrets import secret_in


def secrets(values: Any) -> Iterator[tuple[str, str]]:
    """The dotted key of each text in TOML values that holds a secret, and what it is, without the secret."""
    last, before = "", ""
    for key, text in texts(values):
        parent, _, number = key.rpartition(".")
        # The value of an option may be the next text of a list.
        if secret := secret_in(text, before if number.isdigit() and last == parent else ""):
            yield key, secret
        last, before = parent, text


def texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text in TOML values, with its dotted key."""
    if isinstance(value, dict | list):
        for name, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts(child, f"{key}.{name}" if key else str(name))
    elif isinstance(value, str):
        yield key, value
