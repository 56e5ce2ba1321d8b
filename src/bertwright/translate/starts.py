"""Commands that a script starts, with the script's arguments filled in."""

from __future__ import annotations

import re

from bertwright.translate.command import Command
from bertwright.translate.program import Start
from bertwright.translate.shell import ShellCommand

_VARIABLE = re.compile(r"\$(\w+)")


def started_by(start: Start, script: Command, shell: ShellCommand, passed: set[str]) -> ShellCommand:
    """Return a command that a script starts, with the script's arguments filled in; add their names to `passed`."""

    def filled(text: str) -> str:
        passed.update(_VARIABLE.findall(text))
        return _VARIABLE.sub(lambda found: _text(script, found[1], shell) or found[0], text)

    words = [*filled(start.launcher).split(), *map(filled, start.command)]
    variables = dict(shell.variables)
    for condition, *more in start.when:
        name, equals, wanted = condition.partition("=")
        other = name.endswith("!")
        passed.add(name := name.removesuffix("!"))
        text = _text(script, name, shell)
        if (text == wanted) != other if equals else text not in ("", "None"):
            for word in map(filled, more):
                assigned = re.fullmatch(r"([A-Z]\w*)=(.*)", word)
                variables |= {assigned[1]: assigned[2]} if assigned else {}
                words += [] if assigned else [word]
    # `python run.py --x`: the launcher comes first, then the program's own words.
    return ShellCommand(tuple(words), variables, shell.line, folder=shell.folder)


def _text(script: Command, name: str, shell: ShellCommand, inside: frozenset[str] = frozenset()) -> str:
    """Return the value of a script's argument as the shell would write it. An argument that refers to itself
    (`DATASET_DIR=$DATASET_DIR`), which `inside` detects, is kept unchanged."""
    if name in inside:
        return f"${name}"
    if name not in script.settings:
        return shell.variables.get(name, "")
    setting = script.settings[name]
    text = str(setting.value).lower() if isinstance(setting.value, bool) else setting.typed or str(setting.value)
    return _VARIABLE.sub(lambda found: _text(script, found[1], shell, inside | {name}) or found[0], text)
