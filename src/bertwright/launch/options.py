"""Keys that several targets have: environment variables; further options of a program, a list of strings that must each
be one word of a command; sizes of shared memory in the notation of docker, podman and Azure ML (which starts docker).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

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


_SPLIT = re.compile(r"(--?[\w-]+)\s.*", re.DOTALL)
"""An option and its value as typed in a shell, where they are two words."""


def _one_word_each(options: tuple[str, ...]) -> tuple[str, ...]:
    for option in options:
        if found := _SPLIT.fullmatch(option.strip()):
            # Leave out the value, which may be a secret.
            name, joined = found[1], f"{found[1]}=..." if found[1].startswith("--") else f"{found[1]}..."
            raise ValueError(f'"{name} ..." would be passed as one word, including the space; write "{joined}"')
        if option != option.strip() or not option or "\n" in option:
            raise ValueError(
                "an option is empty, has spaces around it, or has a line break; write one option per string"
            )
    return options


def _each_an_option(options: tuple[str, ...]) -> tuple[str, ...]:
    for option in _one_word_each(options):
        if not option.startswith("-"):
            raise ValueError(
                "each string is on a separate line of the script, so it must be an option with its value, such as "
                '"--constraint=v100"'
            )
    return options


Words = Annotated[tuple[str, ...], AfterValidator(_one_word_each)]
"""Options of a command; an option's value may also be the next string."""
Lines = Annotated[tuple[str, ...], AfterValidator(_each_an_option)]
"""Options of a script, each on its own line together with its value."""


def _size(size: str) -> str:
    if not re.fullmatch(r"[1-9]\d*[bkmg]", size):
        raise ValueError('write the size of shared memory like "64g" or "512m"')
    return size


SharedMemory = Annotated[str, AfterValidator(_size)]
"""A number followed by b, k, m or g."""
