"""Environment variables of a place: which ones a description may contain, and how a shell script sets them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from bertwright.core.addresses import is_secret

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _without_secrets(variables: Any) -> Any:
    for name in variables if isinstance(variables, dict) else ():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a valid name of a variable; use letters, digits and _")
        if is_secret(name):
            raise ValueError(
                f"{name} is a secret according to its name, and job descriptions must not contain secrets. Set "
                "it on the machines of the place"
            )
    return variables


Environment = Annotated[dict[str, str], BeforeValidator(_without_secrets)]
"""Environment variables by name; secrets are rejected, by their name before the type of their value, which a sentence
about the type would cite."""


def exports(variables: Mapping[str, str]) -> list[str]:
    """Return the lines of a shell script that set the variables; values are quoted literally."""
    return [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
