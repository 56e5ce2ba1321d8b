"""Find secrets, which must not be in a job's description: it is printed, kept with the run, and shown to others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bertwright.core.dotted import below
from bertwright.core.errors import RecipeError
from bertwright.core.secrets import secret_in, secrets_in_words


def refuse_secrets(values: Any, file: str, lines: Mapping[str, int], remedy: str) -> None:
    """Raise one `RecipeError` that lists every secret in TOML values without showing it, followed by `remedy`.

    To be called before the values are validated: sentences about other mistakes cite values. `lines` is as in
    `core.toml.validate`.
    """
    if found := list(secrets(values)):
        from bertwright.core.validation_messages import place  # not needed at every start

        listed = [f"{place(key, file, lines)}: {key} holds {secret}" for key, secret in found]
        raise RecipeError(
            "\n".join(f"{each}, but job descriptions must not contain secrets. {remedy}" for each in listed)
        )


def secrets(values: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the dotted key of each string in TOML values that holds a secret, and the kind of secret, not its value."""
    if isinstance(values, list) and all(isinstance(each, str) for each in values):
        # It may be a command, whose words tell of each other: --token x.
        yield from ((below(key, place), what) for place, what in sorted(secrets_in_words(values).items()))
    elif isinstance(values, dict | list):
        for name, child in values.items() if isinstance(values, dict) else enumerate(values):
            yield from secrets(child, below(key, name))
    elif isinstance(values, str) and (what := secret_in(values)):
        yield key, what
