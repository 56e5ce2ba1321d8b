"""`convert`: write examples in a common format, or a published model for a runtime."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

import typer

from bertwright.cli.completion import complete_format
from bertwright.cli.options import Json, option_groups, refuse_useless
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import json_line
from bertwright.core.errors import RecipeError
from bertwright.export.config import Format as ModelFormat

PAGE = "page"


@dataclass(frozen=True)
class Form:
    """What to write."""

    to: Annotated[
        str,
        typer.Option(
            autocompletion=complete_format,
            metavar="KIND",
            help="hdf5, hdf5-varlen, tfrecord, lddl, datasets; for a run also megatron; for a model "
            f"{', '.join(get_args(ModelFormat))}, or page: an HTML file with the model inside.",
        ),
    ]
    length: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Tokens per padded row, if SRC does not define it.")
    ] = None
    predictions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Predictions per padded row, if SRC does not define it.")
    ] = None
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress TFRecord files.")] = False

    @property
    def given(self) -> dict[str, bool]:
        """The options that only examples have, and whether they are given."""
        sizes = {"--length": self.length is not None, "--predictions": self.predictions is not None}
        return {**sizes, "--gzip": self.gzip}


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

    @property
    def given(self) -> dict[str, bool]:
        """The options that only examples have, and whether they are given."""
        given = {"--vocab": self.vocab is not None, "--files": self.files > 0}
        return {**given, "--heldout": self.heldout is not None, "--quarantine": self.quarantine}


@option_groups
def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SRC",
            help="A run folder, a folder of examples of any format, or of a model as transformers saves it.",
        ),
    ],
    destination: Annotated[Path, typer.Argument(metavar="DST", help="The folder to create; for --to page the file.")],
    form: Form,
    reading: Reading,
    as_json: Json = False,
) -> None:
    """Convert examples of a run, with fixed masks, or of anyone, to a common format; or a model for a runtime."""
    from bertwright.cli.conversion import ConvertOptions, convert_model, convert_to_page
    from bertwright.cli.conversion import convert as write
    from bertwright.export.runtimes.members import RUNTIMES
    from bertwright.formats.format import Kind
    from bertwright.formats.target import Target, kind_of

    options = ConvertOptions(reading.vocab, reading.files, reading.heldout, reading.quarantine)
    models = [runtime.name for runtime in RUNTIMES]
    with Terminal() as log:
        if form.to not in (*models, PAGE, *get_args(Kind)):
            of_model = ", ".join(runtime.name for runtime in RUNTIMES if runtime.reads == runtime.name)
            raise RecipeError(
                f"nothing is written as {form.to!r}; choose for examples {', '.join(get_args(Kind))}, for a model "
                f"{of_model}, {PAGE}."
            )
        if form.to in (*models, PAGE):
            refuse_useless("with a model", {**form.given, **reading.given})
            if form.to == PAGE:
                note = convert_to_page(source, destination, log)
            else:
                note = convert_model(source, destination, form.to, log)
        else:
            target = Target(kind_of(form.to), form.length, form.predictions, form.gzip)
            note = write(source, destination, target, options, log)
    print(json_line(note) if as_json else destination)
