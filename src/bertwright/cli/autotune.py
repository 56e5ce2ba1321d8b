"""`bench autotune`: find the micro-batch, engine and checkpointing that train a recipe fastest on this machine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tomli_w
import typer

from bertwright.cli.option_groups import grouped
from bertwright.cli.options import Json, Run, load_recipe
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import columns, json_line, visible
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import write_atomic

if TYPE_CHECKING:
    from bertwright.trial.attempt import Tried
    from bertwright.trial.search import Trial

HEAD = ("engine", "checkpointed", "micro-batch", "passes", "s/step", "sequences/s", "memory GB", "outcome")


@dataclass(frozen=True)
class Timing:
    """What to time."""

    phase: Annotated[int, typer.Option(metavar="N", min=0, help="The phase to time, counted from 0.")] = 0
    ranks: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Number of processes on this machine; each uses one GPU if there are GPUs."
        ),
    ] = 1
    steps: Annotated[int, typer.Option(metavar="N", min=1, help="Number of steps to time for each size.")] = 3
    limit: Annotated[float, typer.Option(metavar="N", min=1, help="Time limit of each trial, in seconds.")] = 600


@dataclass(frozen=True)
class Candidates:
    """The candidates for the fastest configuration."""

    engine: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Engines to try; default: all that support this number of ranks."),
    ] = None
    micro_batch: Annotated[
        list[int] | None,
        typer.Option(min=1, metavar="N", help="Micro-batch sizes to try; default: doubled as long as that is faster."),
    ] = None


@grouped
def autotune(
    of: Run,
    timing: Timing,
    among: Candidates,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the recipe with the fastest configuration to this file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a few steps with every candidate for the fastest configuration, each in its own process; keep a table."""
    from bertwright.trial import autotune as tuning
    from bertwright.trial.attempt import Tried
    from bertwright.trial.autotune import open_table, trial_examples
    from bertwright.trial.candidates import engines_to_try, sizes_to_try
    from bertwright.trial.search import best

    loaded, folder = load_recipe(of.recipe, of.overrides, of.out)
    if write and write.exists():
        raise RecipeError(f"--write {write} exists already. Give the name of a new file, or remove it first.")
    tried = Tried(loaded, timing.phase, timing.ranks, timing.steps, timing.limit)
    candidates = engines_to_try(tried, among.engine), sizes_to_try(tried, among.micro_batch)
    with Terminal() as log, open_table(folder, tried, tuning.machine_here(tried)) as table:
        trials = tuning.autotune(tried, *candidates, table, partial(trial_examples, loaded, folder, log), log)
    fastest = best(trials)
    if fastest and write:
        _write(write, of, fastest, tried)
    _print(trials, fastest, tried, table.file, as_json)
    if fastest is None:
        raise DataError(
            "autotune: no configuration could be trained. The table gives the reasons; use a smaller recipe, or more "
            "memory."
        )


def _write(file: Path, of: Run, fastest: Trial, tried: Tried) -> None:
    """Write the recipe as given, with its preset, its overrides and the fastest keys."""
    from bertwright.recipe import Recipe
    from bertwright.recipe_file import Written

    written = Written.read(of.recipe, [*(of.overrides or []), *_overrides(fastest, tried)], Recipe)
    # Before it is written, because it must load with these ranks.
    Recipe.validated(written).check(str(file), ranks=tried.ranks)
    speed = f"{tried.recipe.train.phases[tried.phase].batch / fastest.seconds:,.1f} sequences/s"
    head = (
        f"# {of.recipe} with the configuration that bench autotune found for phase {tried.phase} on {tried.ranks} "
        f"ranks: {speed}.\n# {_changed(fastest, tried)}\n\n"
    )
    write_atomic(file, (head + tomli_w.dumps(written.values)).encode())


def _print(trials: Sequence[Trial], fastest: Trial | None, tried: Tried, file: Path, as_json: bool) -> None:
    batch = tried.recipe.train.phases[tried.phase].batch
    if as_json:
        from bertwright.trial.candidates import keys_of

        keys = keys_of(tried, fastest.candidate) if fastest else None
        print(json_line({"best": keys, "table": str(file), "trials": [asdict(trial) for trial in trials]}))
        return
    rows = [_row(trial, batch, trial is fastest) for trial in trials]
    print(visible("\n".join(columns(HEAD, rows))))
    if fastest:
        print(visible(_changed(fastest, tried)))
        print(" ".join(_overrides(fastest, tried)))


def _overrides(fastest: Trial, tried: Tried) -> list[str]:
    from bertwright.trial.candidates import keys_of

    return [f"{key}={json.dumps(value)}" for key, value in keys_of(tried, fastest.candidate).items()]


def _changed(fastest: Trial, tried: Tried) -> str:
    """One line that tells what the fastest configuration changes in the recipe."""
    from bertwright.trial.candidates import changes_of

    return f"changed: {'; '.join(changes_of(tried, fastest.candidate)) or 'nothing'}"


def _row(trial: Trial, batch: int, fastest: bool) -> tuple[str, ...]:
    candidate, numbers = trial.candidate, ("–", "–", "–", "–")
    if trial.outcome == "trained":
        speed, memory = f"{batch / trial.seconds:,.1f}", f"{trial.memory_bytes / 1e9:.2f}"
        numbers = (f"{trial.passes}", f"{trial.seconds:.3f}", speed, memory)
    said = "fastest" if fastest else trial.outcome + (f": {trial.why}" if trial.why else "")
    again = "yes" if candidate.checkpoint_activations else "no"
    return (candidate.engine, again, f"{candidate.micro_batch:,}", *numbers, said)
