"""`serve`: models behind a server of this machine, for programs and, as a page, for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertwright.cli.options import Listening, option_groups

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from bertwright.page.server import App


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


@dataclass(frozen=True)
class Computed:
    """How they are computed, and what a request may take."""

    runtime: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="torch, onnx, onnx-fp16 or onnx-int8; default: torch, or the ONNX file of a folder."
        ),
    ] = ""
    precision: Annotated[
        Literal["float32", "bfloat16"],
        typer.Option(help="Of torch; bfloat16 rounds, and takes about two thirds of the time."),
    ] = "float32"
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="For the answer to a request.")] = 60.0
    queue: Annotated[
        int, typer.Option(metavar="N", min=1, help="Requests that wait at most; others are told to come again.")
    ] = 256
    largest: Annotated[int, typer.Option(metavar="BYTES", min=1000, help="The largest request.")] = 2**20


_AS_DEFAULT = Computed()


@option_groups
def serve(of: Shown, where: Listening, how: Computed) -> None:
    """Serve models to programs, and a page to try them: blanks, vectors, classes, tags, answers, on this machine."""
    serve_models(of.models, of.checkpoint or [], where, how)


def serve_models(
    folders: Sequence[Path], checkpoints: Sequence[int], where: Listening, how: Computed = _AS_DEFAULT
) -> None:
    """Serve the models in these folders, the first of which may be a run with checkpoints, until a signal."""
    from bertwright.serve.app import Limits, make_app
    from bertwright.serve.load import How, load_models

    limits = Limits(bytes=how.largest, seconds=how.timeout, waiting=how.queue)

    def load() -> App:
        models = load_models(folders, checkpoints, How(how.runtime, how.precision))
        return make_app(models, limits, _training_routes(folders))

    where.serve(load)


def _training_routes(folders: Sequence[Path]) -> Sequence[BaseRoute]:
    """The page of `watch` for those that are runs, as a tab of the page."""
    runs = [folder for folder in folders if (folder / "recipe.toml").is_file()]
    if not runs:
        return []
    from bertwright.watch.app import watch_routes

    return watch_routes(runs)
