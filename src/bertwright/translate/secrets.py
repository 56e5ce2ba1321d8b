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
    words, job = hidden_words(command.words), hidden_words(command.job)
    return command._replace(words=words, variables=variables, job=job)
