"""What may not stand in the description of a job, which is printed, kept with the run, and shown to others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bertwright.core.redact import has_credentials, is_secret, redact_credentials

# A value that begins with $ is asked for where the line is run.
_ASSIGNED = re.compile(r"([A-Za-z_][\w-]*)=(?![\"']?\$)[^\s;&|]")
_ADDRESS = re.compile(r"[a-z][a-z0-9+]+://[^\s\"']+", re.IGNORECASE)


def has_address(text: str) -> bool:
    """Whether `text` is, or has in it, an address with a password, a token or a query."""
    addresses = [text, *_ADDRESS.findall(text)]
    return has_credentials(text) or any(redact_credentials(address) != address for address in addresses)


def secret_in(text: str) -> str:
    """What is secret in a text of a place, without the secret; "" where nothing is."""
    named = [name for name in _ASSIGNED.findall(text) if is_secret(name)]
    if named:
        return f"{named[0]}=..., a secret by its name"
    return "an address with a password, a token or a query" if has_address(text) else ""


def texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text in TOML values, with its dotted key."""
    if isinstance(value, dict | list):
        for name, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts(child, f"{key}.{name}" if key else str(name))
    elif isinstance(value, str):
        yield key, value
