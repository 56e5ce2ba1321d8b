"""`certify`: whether every runtime on this machine answers as the model was trained to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertwright.cli.options import Json, option_groups, refuse_out
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import columns, json_line, terminal_width, wrap
from bertwright.core.errors import ArtifactError, DataError

if TYPE_CHECKING:
    from bertwright.export.certify.lines import Lines


@dataclass(frozen=True)
class Certified:
    """The model, the lines and the runtimes."""

    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER|RUN",
            help="A published model: a folder as transformers saves it, whoever made it, a file of weights beside its "
            "configuration, or a run with its export.",
        ),
    ]
    lines: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A text file with a text on each line; default: sentences that the run held out, or words of the "
            "vocabulary. Outputs are compared for the first 1,000, ids for all; 40 hard lines are always added.",
        ),
    ] = None
    runtimes: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME",
            help="Only these, of transformers, sentence-transformers, transformers.js(-fp16, -int8) and the formats "
            "that `convert --to` writes of a model; default: all that are installed.",
        ),
    ] = ""
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A JSON file for the certificate; default for a run: its certificate.json."),
    ] = None


@option_groups
def certify(of: Certified, as_json: Json = False) -> None:
    """Run a published model in every runtime on this machine, and compare ids, outputs, speed and memory."""
    from bertwright.core.files import write_json
    from bertwright.export.certify.run import certify as make
    from bertwright.export.certify.shapes import CERTIFICATE
    from bertwright.export.certify.table import HEAD, cells, explanations
    from bertwright.export.published_copy import as_published
    from bertwright.shipped import is_run_folder

    out = of.out or (of.folder / CERTIFICATE if is_run_folder(of.folder) else None)
    if out is not None:
        refuse_out(out, of.lines)
    with Terminal() as log:
        source, lines = _model_and_lines(of.folder, of.lines)
        with as_published(source) as folder:
            certificate = make(folder, lines, [name for name in of.runtimes.split(",") if name], log)
        if out is not None:
            write_json(out, certificate)
    if as_json:
        print(json_line(certificate))
    else:
        print(*columns(HEAD, [cells(row) for row in certificate["rows"]]), sep="\n")
        for note in explanations(certificate):
            print(*wrap("", note, terminal_width()), sep="\n")
        if out is not None:
            print(out)
    if any(row["status"] in ("differs", "failed") for row in certificate["rows"]):
        if as_json:  # the certificate says it, and a program reads one value
            raise typer.Exit(ArtifactError.exit_code)
        raise ArtifactError("runtimes do not answer as the model was trained to: see the rows above.")


def _model_and_lines(path: Path, given: Path | None) -> tuple[Path, Lines]:
    """The published folder, or file of weights, that `path` is or has, and the lines to certify it on."""
    from bertwright.export.certify.lines import heldout_lines, read_lines, vocabulary_lines
    from bertwright.model.pretrained_config import folder_of, read_pretrained
    from bertwright.pipeline.run_folder import RunFolder, recorded_recipe
    from bertwright.shipped import is_run_folder
    from bertwright.vocab.entries import entries_file, entries_of

    is_run = is_run_folder(path)
    # A folder of transformers may be of any family: runtimes know what they can run.
    is_folder = not is_run and (path / "config.json").is_file()
    source = path if is_folder else read_pretrained(path / "export" if is_run else path).source
    folder = folder_of(source)
    if given is not None:
        return source, read_lines(given)
    if is_run and (recipe := recorded_recipe(path)[0]).corpus is not None:
        corpus = RunFolder(path).artifact("corpus")
        if lines := heldout_lines(corpus, recipe.examples.heldout):
            return source, lines
    try:
        return source, vocabulary_lines(entries_of(entries_file(folder) or folder / "vocab.txt"))
    except DataError as error:
        raise DataError(f"no lines can be put together from the words of {folder}: {error} Give --lines.") from None
