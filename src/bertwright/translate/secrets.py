"""Remove secrets from commands, so that they can be in a shared recipe."""

from __future__ import annotations

from bertwright.core.secrets import hidden_value, hidden_words
from bertwright.translate.shell import ShellCommand

LEFT_OUT = (
    "A user name, password, query or secret variable of the commands was removed here. Set it where the recipe "
    "runs, not in a file."
)


def without_secrets(command: ShellCommand) -> ShellCommand:
    """Return the command without names, passwords and queries in addresses, and without values of secret variables,
    options and headers."""
    variables = {name: hidden_value(name, value) for name, value in command.variables.items()}
    return command._replace(words=_without(command.words), variables=variables, job=_without(command.job))


def _without(words: tuple[str, ...]) -> tuple[str, ...]:
    # Slurm takes variables as a list: --export=ALL,NAME=value.
    return tuple(",".join(hidden_words(word.split(","))) for word in hidden_words(words))
