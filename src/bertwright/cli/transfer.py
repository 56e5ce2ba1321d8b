"""`launch upload`: copy a run folder, or parts of it, to a remote address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from bertwright.cli.options import Json
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import json_line
from bertwright.core.numbers import size_of

Parts = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PART",
        help="corpus, vocab, examples, checkpoints (the newest and the best), train, evaluate, export, report; without "
        "any: all that are finished.",
    ),
]


def upload(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    url: Annotated[str, typer.Argument(metavar="URL", help="Such as az://container/run or s3://bucket/run.")],
    parts: Parts = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Also read back what an earlier upload has finished.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Copy the finished parts of a run to remote storage; run it again to send what is missing there."""
    from bertwright.pipeline.parts import finished_parts
    from bertwright.transfer.upload import upload as send

    with Terminal() as log:
        sent = send(finished_parts(run, parts or [], log), url, log, verify)
    if as_json:
        print(json_line(asdict(sent)))
    else:
        print(f"{sent.url}: {', '.join(sent.parts)}")
        sizes = f"{size_of(sent.bytes)} were sent, {size_of(sent.there_before)} were there before"
        print(f"{sizes}, {sent.files:,} files sent")


VERBS: dict[str, Callable[..., None]] = {"launch upload": upload}
