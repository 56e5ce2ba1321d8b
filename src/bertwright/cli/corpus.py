"""`corpus`: run the stage, download the dump it would read, or print what it dropped."""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bertwright.cli.options import DOWNLOADS, Json, MaybeRun, Run, load_recipe, option_groups, refuse_useless
from bertwright.cli.stages import Workers, run_and_print, run_stages
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import json_line, print_download
from bertwright.core.errors import RecipeError


@dataclass(frozen=True)
class Dropped:
    """Options for printing what was dropped."""

    dropped: Annotated[bool, typer.Option("--dropped", help="Print what was dropped, as JSON lines.")] = False
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="With --dropped: maximum number of documents.")
    ] = None


@dataclass(frozen=True)
class Dump:
    """Options for downloading a dump."""

    download: Annotated[
        str,
        typer.Option(
            metavar="WIKI",
            help="Only download a dump, into --out: of a language's Wikipedia, or of a database (nlwiktionary).",
        ),
    ] = ""
    date: Annotated[str, typer.Option(metavar="YYYYMMDD", help="With --download: the date of the dump.")] = "latest"
    mirror: Annotated[
        str, typer.Option(metavar="URL", help="With --download: server to use instead of dumps.wikimedia.org.")
    ] = ""


@option_groups
def corpus(
    of: MaybeRun,
    workers: Workers,
    request: Dropped,
    dump: Dump,
    as_json: Json = False,
) -> None:
    """Only this stage: dump to sentence-per-line shards."""
    if not dump.download:
        refuse_useless("without --download", {"--date": dump.date != "latest", "--mirror": bool(dump.mirror)})
    if not request.dropped:
        refuse_useless("without --dropped", {"--limit": request.limit is not None})
    if dump.download:
        refuse_useless(
            "with --download", {"RECIPE": of.recipe is not None, "--dropped": request.dropped, **workers.given()}
        )
        _fetch(dump, of.out or DOWNLOADS, as_json)
        return
    if of.recipe is None:
        raise RecipeError("give a recipe, or --download WIKI to download a dump.")
    given = Run(of.recipe, of.overrides, of.out)
    if request.dropped:
        _refuse_unkept(given)
        _print_dropped(run_stages(given, ["corpus"], workers), request.limit)
    else:
        run_and_print(given, ["corpus"], as_json, workers)


def _fetch(dump: Dump, into: Path, as_json: bool) -> None:
    from bertwright.corpus.download import BASE, database, download

    with Terminal() as log:
        path = download(dump.download, dump.date, into, dump.mirror or BASE, log)
    # For "latest", only the name of the file has the date.
    folder = f"{database(dump.download)}/{path.name.split('-')[1]}"
    print_download(path, f"{dump.mirror or BASE}/{folder}/{path.name}", as_json)


def _refuse_unkept(of: Run) -> None:
    """Raise `RecipeError`, before a corpus is made, if its recipe keeps no dropped documents."""
    config = load_recipe(of.recipe, of.overrides, of.out)[0].corpus
    if config is not None and not config.filter.keep_dropped:
        raise RecipeError(
            "--dropped: corpus.filter.keep_dropped is off, so dropped documents are not kept. Turn it on."
        )


def _print_dropped(folder: Path, limit: int | None) -> None:
    from bertwright.core.artifact import open_artifact
    from bertwright.corpus.dropped import read_dropped

    dropped = read_dropped(open_artifact(folder / "corpus", "corpus"))
    lines = (f"{json_line(document)}\n" for document in itertools.islice(dropped, limit))
    _page(lines) if sys.stdout.isatty() else sys.stdout.writelines(lines)


def _page(lines: Iterator[str]) -> None:
    """Show lines on the terminal page by page, with $PAGER or less, which reads only the lines that are shown; without
    such a program, all of them."""
    pager = shlex.split(os.environ.get("PAGER") or "less") if sys.stdin.isatty() else []
    if not pager or shutil.which(pager[0]) is None:
        sys.stdout.writelines(lines)
        return
    # -F: less ends by itself if one page is enough; -S: a document is one line, however long it is.
    shown = subprocess.Popen(pager, stdin=subprocess.PIPE, text=True, env={"LESS": "-FSX", **os.environ})
    with suppress(BrokenPipeError), shown:  # the user has closed the pager
        assert shown.stdin is not None
        shown.stdin.writelines(lines)
