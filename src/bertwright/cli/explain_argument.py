"""`check --explain "run_pretraining.sh 11"`: what a positional argument of a script means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.explain import explain
from bertwright.recipe import Recipe
from bertwright.translate.program import Program, called, programs

_ARGUMENT = re.compile(r"(\S+\.sh)\s+(\d+)")


def explain_argument(asked: str) -> dict[str, Any] | None:
    """What argument N of "SCRIPT N" is in each version of the script, with the keys that hold it; None if `asked` has
    another form. `RecipeError` for a script that is not known, or that reads no such argument.
    """
    match = _ARGUMENT.fullmatch(asked.strip())
    if match is None:
        return None
    script, number = match[1], int(match[2])
    versions = [program for program in called(script) if program.positions]
    if not versions:
        known = sorted({name for p in programs().values() if p.positions for name in p.scripts if name.endswith(".sh")})
        raise RecipeError(
            f"--explain {asked}: the arguments of {script} are unknown; give an argument of {_listed(known)} instead."
        )
    facts: dict[str, Any] = {}
    for program in versions:
        names = program.positions[number - 1].split() if 0 < number <= len(program.positions) else []
        facts |= {f"{program.title} {number}, {name}": dict(_told(program, name)) for name in names}
    if not facts:
        most = max(len(program.positions) for program in versions)
        raise RecipeError(f"--explain {asked}: {script} reads {most} arguments. Give a number from 1 to {most}.")
    return facts


def _told(program: Program, name: str) -> Iterator[tuple[str, str]]:
    """The keys that hold an argument with their meanings, and how the argument differs from them."""
    original = program.original(name)
    if original is None:
        return
    for key in original.keys:
        yield key, explain(Recipe, key)["meaning"]
    yield "differs" if original.keys else "no key", original.note or "nothing"


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
