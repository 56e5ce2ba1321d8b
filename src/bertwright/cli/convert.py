"""`convert`: write examples in a common format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bertwright.cli.completion import complete_format
from bertwright.cli.options import Json, option_groups
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import json_line


@dataclass(frozen=True)
class Form:
    """What to write."""

    to: Annotated[
        str,
        typer.Option(
            autocompletion=complete_format,
            metavar="KIND",
            help="hdf5, hdf5-varlen, tfrecord, lddl, datasets; for a run also megatron.",
        ),
    ]
    length: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Tokens per padded row, if SRC does not define it.")
    ] = None
    predictions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Predictions per padded row, if SRC does not define it.")
    ] = None
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress TFRecord files.")] = False


@dataclass(frozen=True)
class Reading:
    """How to read the source, and how much of it."""

    vocab: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The vocab.txt, needed for the word pieces of LDDL.")
    ] = None
    files: Annotated[
        int, typer.Option(metavar="N", min=0, help="For a run: number of files per phase; 0: one per shard.")
    ] = 0
    heldout: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="For a run: maximum number of held-out examples, evenly spread."),
    ] = None
    quarantine: Annotated[bool, typer.Option("--quarantine", help="Leave damaged files out and name them.")] = False


@option_groups
def convert(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="A run folder, or a folder of examples of any format.")],
    destination: Annotated[Path, typer.Argument(metavar="DST", help="The folder to create.")],
    form: Form,
    reading: Reading,
    as_json: Json = False,
) -> None:
    """Convert examples of a run, with fixed masks, or anyone's examples, to a common format."""
    from bertwright.cli.conversion import ConvertOptions
    from bertwright.cli.conversion import convert as write
    from bertwright.formats.target import Target, kind_of

    options = ConvertOptions(reading.vocab, reading.files, reading.heldout, reading.quarantine)
    with Terminal() as log:
        target = Target(kind_of(form.to), form.length, form.predictions, form.gzip)
        note = write(source, destination, target, options, log)
    print(json_line(note) if as_json else destination)
