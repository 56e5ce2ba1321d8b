"""`serve`: models behind a server of this machine, for programs and, as a page, for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertwright.cli.options import Listening, option_groups
from bertwright.core.config import expand_home

if TYPE_CHECKING:
    from starlette.routing import BaseRoute


@dataclass(frozen=True)
class Shown:
    """The models to serve."""

    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL|RUN...", help="Runs, or folders of transformers; the first is the default one."),
    ]
    checkpoint: Annotated[
        list[int] | None,
        typer.Option(metavar="STEP", help="Also serve this checkpoint of the run; may be given several times."),
    ] = None


@option_groups
def serve(of: Shown, where: Listening) -> None:
    """Serve models to programs, and a page to try them: blanks, vectors, classes, tags, answers, on this machine."""
    serve_models(of.models, of.checkpoint or [], where)


def serve_models(folders: Sequence[Path], checkpoints: Sequence[int], where: Listening) -> None:
    """Serve the models in these folders, the first of which may be a run with checkpoints, until a signal."""
    listener = where.listen()
    from bertwright.serve.app import Limits, make_app
    from bertwright.serve.load import load_models
    from bertwright.serve.pages import page_routes

    folders = [expand_home(path) for path in folders]
    models = load_models(folders, checkpoints)
    where.serve(make_app(models, Limits(), [*_training_routes(folders), *page_routes()]), listener)


def _training_routes(folders: Sequence[Path]) -> Sequence[BaseRoute]:
    """The page of `watch` for those that are runs, as a tab of the page."""
    runs = [folder for folder in folders if (folder / "recipe.toml").is_file()]
    if not runs:
        return []
    from bertwright.watch.app import watch_routes

    return watch_routes(runs)
