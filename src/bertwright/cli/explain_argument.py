"""`check --explain "run_pretraining.sh 11"`: what a positional argument of a script means."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from bertwright.core.errors import RecipeError
from bertwright.explain import Original, explain, originals, tables
from bertwright.recipe import Recipe
from bertwright.translate.program import programs

_ARGUMENT = re.compile(r"(\S+\.sh)\s+(\d+)")


class Script(NamedTuple):
    """A version of a script, with the names of its positional arguments in order."""

    title: str
    positions: Sequence[str]
    """The script gives each value to all names at its position."""
    original: Callable[[str], Original | None]
    """An argument's entry in `originals.toml`, by its name."""
    reason: str = ""
    """Why no key holds an argument without an entry."""


def explain_argument(query: str) -> dict[str, Any] | None:
    """What argument N of "SCRIPT N" is in each version of the script, with the keys that hold it; None if `query` has
    another form. `RecipeError` for a script that is not known, or that reads no such argument.
    """
    match = _ARGUMENT.fullmatch(query.strip())
    if match is None:
        return None
    script, number = match[1], int(match[2])
    known = _scripts()
    versions = known.get(script.rpartition("/")[2], [])
    if not versions:
        raise RecipeError(
            f"--explain {query}: the arguments of {script} are unknown; give an argument of "
            f"{_enumerate(sorted(known))} instead."
        )
    facts: dict[str, Any] = {}
    for version in versions:
        names = version.positions[number - 1].split() if 0 < number <= len(version.positions) else []
        facts |= {f"{version.title} {number}, {name}": dict(_keys_and_note(version, name)) for name in names}
    if not facts:
        most = max(len(version.positions) for version in versions)
        raise RecipeError(f"--explain {query}: {script} reads {most} arguments. Give a number from 1 to {most}.")
    return facts


def _scripts() -> dict[str, list[Script]]:
    """The versions of each script with positional arguments, by the name of its file."""
    found: dict[str, list[Script]] = {}
    for program in programs().values():
        for name in program.scripts:
            if program.positions and name.endswith(".sh"):
                found.setdefault(name, []).append(Script(program.title, program.positions, program.original))
    for key, table in tables().items():
        for title, names in table.get("positions", {}).items():
            script = Script(title, names.split(), partial(_entry, key), table.get("reason", ""))
            found.setdefault(table["script"], []).append(script)
    return found


def _entry(table: str, name: str) -> Original | None:
    return next((o for o in originals().get(name, ()) if (o.table, o.name) == (table, name)), None)


def _keys_and_note(script: Script, name: str) -> Iterator[tuple[str, str]]:
    """The keys that hold an argument with their meanings, and how the argument differs from them."""
    original = script.original(name)
    for key in original.keys if original else ():
        yield key, explain(Recipe, key)["meaning"]
    note = original.note if original else script.reason
    yield "differs" if original and original.keys else "no key", note or "nothing"


def _enumerate(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
