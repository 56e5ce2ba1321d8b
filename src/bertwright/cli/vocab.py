"""`vocab`: run the stage, or download a published vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from bertwright.cli.options import DOWNLOADS, Json, MaybeRun, Run, option_groups, refuse_useless
from bertwright.cli.stages import run_and_print
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import print_download
from bertwright.core.errors import RecipeError


@dataclass(frozen=True)
class Published:
    """Options for downloading a published vocabulary."""

    download: Annotated[
        str,
        typer.Option(metavar="NAME", help="Only download google-uncased, google-cased or google-multilingual-cased."),
    ] = ""
    mirror: Annotated[
        str, typer.Option(metavar="URL", help="With --download: server to use instead of huggingface.co.")
    ] = ""


@option_groups
def vocab(of: MaybeRun, published: Published, as_json: Json = False) -> None:
    """Only this stage: shards to vocabulary."""
    name, mirror = published.download, published.mirror
    if not name:
        refuse_useless("without --download", {"--mirror": bool(mirror)})
    if name:
        refuse_useless("with --download", {"RECIPE": of.recipe is not None})
        from bertwright.vocab.download import HUB, PUBLISHED
        from bertwright.vocab.download import download as fetch

        with Terminal() as log:
            path = fetch(name, of.out or DOWNLOADS, log, mirror or HUB)
        print_download(path, f"{mirror or HUB}/{PUBLISHED[name].repository}/resolve/main/vocab.txt", as_json)
    elif of.recipe is None:
        raise RecipeError("give a recipe, or --download NAME to download a published vocabulary.")
    else:
        run_and_print(Run(of.recipe, of.overrides, of.out), ["vocab"], as_json)
