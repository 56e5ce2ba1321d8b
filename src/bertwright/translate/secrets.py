"""Commands without secrets, as they may stand in a recipe that is shared."""

from __future__ import annotations

import re

from bertwright.core.redact import is_secret, redact_credentials
from bertwright.translate.shell import ShellCommand

HIDDEN = "hidden"
"""What stands for the value of a variable that is a secret by its name."""
LEFT_OUT = (
    "A name, password, query or secret variable of the commands is left out here. Give it where the recipe is run, "
    "not in a file."
)
_ADDRESS = re.compile(r"[a-z][a-z0-9+]+://[^\s'\"]+", re.IGNORECASE)
_VARIABLE = re.compile(r"([A-Z_][A-Z0-9_]*)=.+", re.DOTALL)


def without_secrets(command: ShellCommand) -> ShellCommand:
    """The command with addresses that have no name, password or query, and no values of secret variables."""
    variables = {name: _word(value) for name, value in command.variables.items()}
    return command._replace(words=tuple(map(_word, command.words)), variables=variables)


def _word(word: str) -> str:
    variable = _VARIABLE.fullmatch(word)
    if variable and is_secret(variable[1]):
        return f"{variable[1]}={HIDDEN}"
    return _ADDRESS.sub(lambda found: redact_credentials(found[0]), word)
