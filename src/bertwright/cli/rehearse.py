"""`run --rehearse`: print the outcome of each part, as a table or as JSON."""

from __future__ import annotations

from pathlib import Path

import typer

from bertwright.cli.terminal import Terminal
from bertwright.cli.text import json_line, visible
from bertwright.recipe import Recipe
from bertwright.trial.rehearse import Outcome, rehearse
from bertwright.trial.shortened_recipe import Rehearsal


def print_rehearsal(recipe: Recipe, folder: Path, as_json: bool) -> None:
    """Rehearse the recipe next to its run folder, print the outcome of each part, and exit with the code of the first
    that failed."""
    with Terminal() as log:
        planned, parts = rehearse(recipe, folder, log)
    _print(planned, parts, as_json)


def _print(planned: Rehearsal, parts: list[Outcome], as_json: bool) -> None:
    """Print the outcomes, and exit with the code of the first part that failed."""
    code = next((part.code for part in parts if part.code), 0)
    if as_json:
        told = [{"part": part.name, "outcome": part.outcome, "text": part.text} for part in parts]
        facts = {"text": planned.text, "ranks": planned.ranks, "left_out": list(planned.left_out)}
        print(json_line({"ok": not code, **facts, "parts": told}))
    else:
        width, outcomes = max(len(part.name) for part in parts), max(len(part.outcome) for part in parts)
        for part in parts:
            print(visible(f"{part.name:<{width}}  {part.outcome:<{outcomes}}  {part.text}"))
        for reason in dict.fromkeys(planned.left_out.values()):
            keys = (key for key, why in planned.left_out.items() if why == reason)
            print(f"not tried, because {reason}: {', '.join(keys)}")
    if code:
        raise typer.Exit(code)
