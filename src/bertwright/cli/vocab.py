"""`vocab`: the stage; or a published vocabulary, fetched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from bertwright.cli.download import DOWNLOADS, print_download
from bertwright.cli.options import Json, MaybeRecipe, Out, Overrides, Run, refuse_useless
from bertwright.cli.stages import run_and_print
from bertwright.cli.terminal import Terminal
from bertwright.core.errors import RecipeError


def vocab(
    recipe: MaybeRecipe = None,
    overrides: Overrides = None,
    out: Out = None,
    download: Annotated[
        str, typer.Option(metavar="NAME", help="Only fetch google-uncased, google-cased or google-multilingual-cased.")
    ] = "",
    mirror: Annotated[str, typer.Option(metavar="URL", help="With --download: instead of huggingface.co.")] = "",
    as_json: Json = False,
) -> None:
    """Only this stage: shards to vocabulary."""
    if not download:
        refuse_useless("without --download", {"--mirror": bool(mirror)})
    if download:
        refuse_useless("beside --download", {"RECIPE": recipe is not None})
        from bertwright.vocab.download import HUB, PUBLISHED
        from bertwright.vocab.download import download as fetch

        with Terminal() as log:
            path = fetch(download, out or DOWNLOADS, log, mirror or HUB)
        print_download(path, f"{mirror or HUB}/{PUBLISHED[download].repository}/resolve/main/vocab.txt", as_json)
    elif recipe is None:
        raise RecipeError("give a recipe, or --download NAME to fetch a published vocabulary.")
    else:
        run_and_print(Run(recipe, overrides, out), ["vocab"], as_json)


VERBS: dict[str, Callable[..., None]] = {"vocab": vocab}
