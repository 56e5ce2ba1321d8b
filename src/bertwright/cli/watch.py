"""`watch`: a page that shows runs while they work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bertwright.cli.options import Listening, option_groups
from bertwright.core.errors import RecipeError


@dataclass(frozen=True)
class Watched:
    """The runs to show."""

    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders, also of runs that have not begun; several are compared."),
    ]


@option_groups
def watch(of: Watched, where: Listening) -> None:
    """Show runs on a page while they work: curves, time left, guesses at each checkpoint, corpus, vocabulary, log."""
    if files := [path for path in of.runs if path.is_file()]:
        raise RecipeError(f"{files[0]} is a file. Give the folder of a run, or where one will be.")
    from bertwright.watch.app import watch_app

    where.serve(lambda: watch_app(of.runs))
