"""`predict`: the answers of a fine-tuned model to texts, pairs, words or questions without labels."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertwright.cli.options import Json, option_groups, refuse_out, refuse_useless
from bertwright.core.errors import RecipeError
from bertwright.core.files import atomic_file
from bertwright.examples.problems import Problems

if TYPE_CHECKING:
    from bertwright.predict.source import Source


@dataclass(frozen=True)
class Asked:
    """What to answer, by which model."""

    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A fine-tuned run, or a folder as transformers saves it.")
    ]
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            help="Texts, pairs, words or questions without labels; - for a text a line from the input.",
        ),
    ]
    text: Annotated[str, typer.Option(metavar="NAME", help="Column of the text, the words, or the question.")] = ""
    pair: Annotated[
        str, typer.Option(metavar="NAME", help="Column of the second text, or of the text with the answer.")
    ] = ""
    tag: Annotated[str, typer.Option(metavar="NAME", help="Column of a column file that gets the tags.")] = ""
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="How much likelier that there is no answer must be than the best one for none to be given; default: "
            "that of the run.",
        ),
    ] = None

    def refuse_useless(self, submission: str, as_json: bool) -> None:
        """Raise `RecipeError` if there is no such file, or if an option has no effect."""
        if self.file == "-":
            named = {"--text": self.text, "--pair": self.pair, "--tag": self.tag, "--submission": submission}
            refuse_useless("for lines of the input", named)
        elif not Path(self.file).is_file():
            raise RecipeError(
                f"there is no file {self.file}. Give one with texts, or - to read a text a line from the input."
            )
        if submission:
            refuse_useless("with --submission", {"--json": as_json, "--tag": bool(self.tag)})

    def refuse_unread(self, source: Source) -> None:
        """Raise `RecipeError` if the names of columns are given for a file that has none, or none of tags."""
        from bertwright.predict.source import Lines, Squad
        from bertwright.predict.words import WordColumns

        if isinstance(source, Lines | Squad):
            refuse_useless(f"for {self.file}, which has no columns,", {"--text": self.text, "--pair": self.pair})
        if not isinstance(source, WordColumns):
            refuse_useless(f"for {self.file}, which has no column of tags,", {"--tag": self.tag})


@option_groups
def predict(
    of: Asked,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write to this file, in the format of the data.")
    ] = None,
    submission: Annotated[
        str,
        typer.Option(
            metavar="glue|hulu|TASK",
            help="Write the file that the server of GLUE or HuLU takes, to --out, a folder (default: the current one).",
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Answer the texts of a file in its own format, with columns for the answers; or lines, by tab-separated rows."""
    of.refuse_useless(submission, as_json)
    file, folder, problems = Path(of.file), of.model, Problems()
    if not submission:
        _check_out(file, out, as_json)
    from bertwright.model.device import resolve_device
    from bertwright.model.text_encoder import Encoder
    from bertwright.predict.answerers import Names, answerer_of
    from bertwright.predict.run import answer_source, open_source, write_json
    from bertwright.predict.source import Lines
    from bertwright.predict.submission import find_submission, write_submission

    wanted = find_submission(submission, folder, file) if submission else None
    encoder = Encoder(folder, resolve_device("auto"))
    answerer = answerer_of(folder, encoder, Names(of.text, of.pair), of.threshold)
    source: Source
    if of.file == "-":
        source = Lines(_standard_input(), answerer, problems)
    else:
        source = open_source(file, answerer, (of.text, of.tag), problems)
        of.refuse_unread(source)
    answered = answer_source(source, answerer)
    if wanted is not None:
        print(write_submission(wanted, encoder.model.config.labels, answered, problems, out or Path()))
        return
    with _output(out) as written:
        (write_json if as_json else source.write)(answered, written)
    for sentence in problems.sentences():
        print(f"predict: {of.file}: {sentence}; not answered", file=sys.stderr)


def _check_out(given: Path, out: Path | None, as_json: bool) -> None:
    """Refuse an output that would replace the data, that cannot be written, or, unless it is JSON, in another format
    than the data's, before the model is loaded."""
    if out is None:
        if not as_json and given.suffix in (".parquet", ".arrow"):
            raise RecipeError(f"the answers to {given} are a {given.suffix}, which is no text. Give --out, or --json.")
        return
    refuse_out(out, given)
    if not as_json and given.is_file() and out.suffix != given.suffix:
        raise RecipeError(f"--out {out}: the answers to {given} are a {given.suffix}. Give the file that suffix.")


def _standard_input() -> Iterator[str]:
    if isinstance(sys.stdin, TextIOWrapper):
        # Of a line that is not UTF-8, only the answer is lost.
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
    for number, line in enumerate(sys.stdin):
        yield line if number else line.removeprefix("\ufeff")


@contextmanager
def _output(out: Path | None) -> Iterator[Any]:
    if out is None:
        sys.stdout.flush()
        yield getattr(sys.stdout, "buffer", None) or _Text()
        return
    with atomic_file(out) as path, path.open("wb") as written:
        yield written
    print(out)


class _Text:
    """Standard output where it takes only text."""

    def write(self, data: bytes) -> None:
        """Write UTF-8."""
        sys.stdout.write(data.decode("utf-8", "replace"))

    def writelines(self, some: Iterator[bytes]) -> None:
        """Write several texts."""
        for data in some:
            self.write(data)
