"""`inspect`: what something is, what is in it, and how another one differs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from bertwright.cli.formatting import print_facts
from bertwright.cli.options import Json, refuse_useless
from bertwright.core.errors import DataError, RecipeError


def inspect(
    path: Annotated[Path, typer.Argument(help="A run folder, artifact, checkpoint, model, dump, text or examples.")],
    verify: Annotated[bool, typer.Option("--verify", help="Check the SHA-256 of every file.")] = False,
    batch: Annotated[
        int | None,
        typer.Option(metavar="STEP", help="Show the batch of this training step, from 1, as text (run folder)."),
    ] = None,
    phase: Annotated[int, typer.Option(help="The phase that --batch means.")] = 0,
    vocab: Annotated[Path | None, typer.Option(help="Of data made elsewhere: its vocab.txt.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Of such data: most to read of each file.")] = None,
    world: Annotated[int, typer.Option(min=1, help="Of such data: ranks that are to share the files.")] = 1,
    diff: Annotated[
        Path | None, typer.Option(help="Say how this one differs: vocabularies, artifacts of one stage, recipes.")
    ] = None,
    against: Annotated[str | None, typer.Option(hidden=True)] = None,
    as_json: Json = False,
) -> None:
    """Say what something is and show some of it; exit code 3 when training data has faults."""
    # The old name, hidden: a script of before is told the new one.
    if against is not None:
        raise RecipeError(f"--against is called --diff now. Write --diff {against}.")
    if batch is None:
        refuse_useless("without --batch", {"--phase": phase != 0})
    if diff is not None:
        from bertwright.cli.compare import compare

        print_facts(compare(path, diff), as_json)
    elif batch is not None:
        from bertwright.cli.batch_text import describe_batch

        print_facts(describe_batch(path, phase, batch), as_json)
    else:
        from bertwright.cli.describe import Examples, describe

        facts = describe(path, verify, Examples(vocab, limit, world))
        print_facts(facts, as_json)
        if any(each.get("faults") for each in facts.get("set", ())):
            raise typer.Exit(DataError.exit_code)


VERBS: dict[str, Callable[..., None]] = {"inspect": inspect}
