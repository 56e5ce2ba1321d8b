"""`embed`: train vectors of texts from a run, without labels."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertwright.cli.options import Json, Overrides, folder_option, option_groups, refuse_useless
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import columns, json_line, terminal_width, wrap
from bertwright.core.errors import RecipeError

if TYPE_CHECKING:
    from bertwright.embed.run import EmbedResults
    from bertwright.embed.scores import Row

_COLUMNS = ("recall@1", "recall@10", "MRR", "Spearman")
_COSINE = "mean cosine"


@dataclass(frozen=True)
class Embedded:
    """What to train from."""

    model: Annotated[
        Path,
        typer.Argument(metavar="RUN|FOLDER", help="The model to start from: a run, or a folder of transformers."),
    ]
    overrides: Overrides = None
    out: Annotated[Path | None, folder_option("The folder of the results; default: runs/embed-<name of the model>")] = (
        None
    )


@dataclass(frozen=True)
class Texts:
    """Where the pairs come from, if not from the run's corpus."""

    pairs: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Pairs of your own, a file or a folder with train and dev: columns anchor, positive."
        ),
    ] = None
    source: Annotated[
        str, typer.Option(metavar="PATH", help="Texts to make pairs from, such as a dump; as corpus.source.")
    ] = ""
    language: Annotated[str, typer.Option(metavar="CODE", help="The language of --source.")] = ""
    most: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Training pairs from a corpus, about: a part of a large one is used."),
    ] = 500_000


@option_groups
def embed(
    of: Embedded,
    texts: Texts,
    dimensions: Annotated[
        str,
        typer.Option(metavar="SIZES", help="Sizes whose first numbers are to be useful vectors too, such as 128,64."),
    ] = "",
    sts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also score this file: columns sentence1, sentence2, score."),
    ] = None,
    show: Annotated[bool, typer.Option("--print", help="Make the pairs, print the recipe, and train nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Train vectors of texts, without labels: pairs from the corpus, training, scores beside BM25, a static table."""
    if texts.pairs is not None:
        refuse_useless("with --pairs", {"--source": bool(texts.source), "--most": texts.most != 500_000})
    if not texts.source:
        refuse_useless("without --source", {"--language": bool(texts.language)})
    from bertwright.embed.material import Material
    from bertwright.embed.run import Wanted, draft_of
    from bertwright.embed.run import embed as train

    material = Material(of.model, texts.pairs, texts.source, texts.language, texts.most)
    wanted = Wanted(material, _sizes(dimensions), sts, of.overrides or ())
    out = of.out or Path("runs") / f"embed-{of.model.resolve().name}"
    with Terminal() as log, redirect_stdout(sys.stderr):
        if show:
            _, drafted = draft_of(wanted, out, log)
        else:
            results = train(wanted, out, log)
    if show:
        print(json_line({"text": drafted.text}) if as_json else drafted.text.rstrip("\n"))
    elif as_json:
        print(json_line({"folder": str(out), **results}))
    else:
        print(*embed_lines(results), sep="\n")


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(each) for each in text.split(",") if each.strip())
    except ValueError:
        sizes = (0,)
    if any(size < 1 for size in sizes):
        raise RecipeError(f"--dimensions {text}: give sizes of vectors, separated by commas, such as 256,128.")
    return sizes


def embed_lines(results: EmbedResults) -> Iterator[str]:
    """The table of scores in percent, how to read it, and where the folders are."""
    rows = results["rows"]
    shown = [name for name in _COLUMNS if any(name in row["scores"] for row in rows)]
    heads = ["STS" if name == "Spearman" else name for name in shown]
    yield from columns(("vectors", *heads, _COSINE), [_cells(row, shown) for row in rows])
    note = (
        f"Of {results['queries']:,} held-out queries, the passage that belongs to each is looked for among "
        f"{results['passages']:,}, in percent; mean cosine: of unrelated passages."
    )
    yield from wrap("", note, terminal_width())
    yield f"for sentence-transformers: {results['model']}"
    yield f"for CPUs without torch:    {results['static']}"


def _cells(row: Row, shown: list[str]) -> tuple[str, ...]:
    scores, cosine = row["scores"], row["scores"].get(_COSINE)
    shares = ("–" if (value := scores.get(name)) is None else f"{100 * value:.1f}" for name in shown)
    return (row["name"], *shares, "–" if cosine is None else f"{cosine:.2f}")
