"""`inspect`: say what something is, show some of its content, or compare it with another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bertwright.cli.options import Json, option_groups, refuse_useless
from bertwright.cli.text import print_facts
from bertwright.core.errors import DataError


@dataclass(frozen=True)
class Batch:
    """Options for showing a batch of a run."""

    batch: Annotated[
        int | None,
        typer.Option(metavar="STEP", help="Show the batch of this training step, from 1, as text (run folder)."),
    ] = None
    phase: Annotated[int, typer.Option(metavar="N", help="The phase of --batch, from 0.")] = 0


@dataclass(frozen=True)
class MadeElsewhere:
    """Options for data made elsewhere."""

    vocab: Annotated[Path | None, typer.Option(metavar="FILE", help="For data made elsewhere: its vocab.txt.")] = None
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="For such data: maximum number of examples to read from each file."),
    ] = None
    world: Annotated[
        int, typer.Option(metavar="N", min=1, help="For such data: number of ranks that will share the files.")
    ] = 1


@dataclass(frozen=True)
class Other:
    """What to compare with."""

    diff: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Compare with this one: vocabularies, artifacts of one stage, recipes."),
    ] = None


@option_groups
def inspect(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A run folder, artifact, checkpoint, model, dump, text or examples.")
    ],
    shown: Batch,
    data: MadeElsewhere,
    other: Other,
    verify: Annotated[bool, typer.Option("--verify", help="Check the SHA-256 of every file.")] = False,
    as_json: Json = False,
) -> None:
    """Say what something is and show some of it; exit code 3 when training data has faults."""
    if shown.batch is None:
        refuse_useless("without --batch", {"--phase": shown.phase != 0})
    elsewhere = {"--vocab": data.vocab is not None, "--limit": data.limit is not None, "--world": data.world != 1}
    if other.diff is not None:
        refuse_useless("with --diff", {"--batch": shown.batch is not None, "--verify": verify, **elsewhere})
        from bertwright.cli.compare import compare

        print_facts(compare(path, other.diff), as_json)
    elif shown.batch is not None:
        refuse_useless("with --batch", {"--verify": verify, **elsewhere})
        from bertwright.cli.batch_text import describe_batch

        print_facts(describe_batch(path, shown.phase, shown.batch), as_json)
    else:
        from bertwright.cli.describe import Examples, describe

        facts = describe(path, verify, Examples(data.vocab, data.limit, data.world))
        if "set" not in facts:  # anything but data made elsewhere
            refuse_useless(f"for {facts['what']}", elsewhere)
        print_facts(facts, as_json)
        if any(each.get("faults") for each in facts.get("set", ())):
            raise typer.Exit(DataError.exit_code)
