"""`import`: weights that another program trained, as a folder that every program loads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bertwright.cli.options import Json, option_groups
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import fact_lines, json_line, terminal_width
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.numbers import pluralize


@dataclass(frozen=True)
class Unsaid:
    """What some sources do not say."""

    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The network's config.json or bert_config.json, if not beside the weights."),
    ] = None
    vocab: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The vocab.txt or tokenizer.json, if it is not beside the weights."),
    ] = None
    lower_case: Annotated[
        bool | None,
        typer.Option(
            "--lower-case/--cased",
            help="Whether text is lower-cased and loses its accents, if the tokenizer's files do not say it.",
        ),
    ] = None
    licence: Annotated[
        str,
        typer.Option(metavar="ID", help="The licence of the weights, such as apache-2.0; default: the card's."),
    ] = ""
    allow_unmatched: Annotated[
        bool, typer.Option("--allow-unmatched", help="Drop tensors that no network here has, and name them.")
    ] = False


@dataclass(frozen=True)
class Fewer:
    """Which entries of the vocabulary to keep."""

    texts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Keep only entries that these need: a text file, a corpus or a run; may be given several times.",
        ),
    ] = None
    entries: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="With --texts: keep N entries at most, the most frequent.")
    ] = None


@option_groups
def import_(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SRC",
            help="A folder or a file with weights: safetensors, a PyTorch or TensorFlow checkpoint.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to create.")],
    unsaid: Unsaid,
    fewer: Fewer,
    as_json: Json = False,
) -> None:
    """Import a network that another program trained: check, report, and write it as a folder of transformers."""
    from bertwright.corpus.lines import open_lines
    from bertwright.export.import_report import summary
    from bertwright.export.imported import Choices, write_imported
    from bertwright.export.sentence_modules import read_modules
    from bertwright.formats.target import atomic_folder, refuse_existing
    from bertwright.model.importers.source import Given, read_source

    if fewer.entries is not None and not fewer.texts:
        raise RecipeError("--entries without --texts has no effect. Give the texts that entries are counted in.")
    with Terminal() as log:
        # What can be known is refused before the folder is begun.
        refuse_existing(out)
        texts = open_lines(fewer.texts or [])
        found = read_source(source, Given(unsaid.config, unsaid.vocab, unsaid.lower_case))
        if found.unknown and not unsaid.allow_unmatched:
            raise ArtifactError(
                f"{source} has {pluralize(len(found.unknown), 'tensor')} that no {found.network.title} here has: "
                f"{', '.join(found.unknown[:5])}{' ...' if len(found.unknown) > 5 else ''}. If the network can do "
                "without, leave them out with --allow-unmatched."
            )
        modules = read_modules(source, found.folder)
        choices = Choices(unsaid.licence, texts, fewer.entries)
        with atomic_folder(out) as draft:
            facts = write_imported(draft, found, choices, modules, log)
    if as_json:
        print(json_line(facts))
    else:
        print(*fact_lines(summary(facts), terminal_width() or 80), sep="\n")
        print(out)
