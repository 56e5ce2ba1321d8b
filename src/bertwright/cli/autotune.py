"""`bench autotune`: find the micro-batch, engine and checkpointing that train a recipe fastest on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertwright.cli.formatting import columns, json_line, visible
from bertwright.cli.options import Json, Out, Overrides, RecipePath, load_recipe
from bertwright.cli.terminal import Terminal
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import make_folder, write_atomic

if TYPE_CHECKING:  # loaded where it is asked for: other verbs start without it
    from bertwright.bench.search import Candidate, Trial
    from bertwright.bench.trial import Tried

HEAD = ("engine", "checkpointed", "micro-batch", "passes", "s a step", "sequences/s", "memory GB", "outcome")


def autotune(
    recipe: RecipePath,
    overrides: Overrides = None,
    out: Out = None,
    phase: Annotated[int, typer.Option(min=0, help="Which phase, counted from 0.")] = 0,
    ranks: Annotated[int, typer.Option(min=1, help="Processes on this machine, a GPU each if there are any.")] = 1,
    engine: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Engines to try; default: all that suit so many ranks.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps that are timed of each size.")] = 3,
    micro_batch: Annotated[
        list[int] | None, typer.Option(min=1, metavar="N", help="Sizes to try; default: doubled while that is faster.")
    ] = None,
    limit: Annotated[float, typer.Option(min=1, help="Seconds after which a trial is ended.")] = 600,
    write: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the recipe with the fastest there.")] = None,
    as_json: Json = False,
) -> None:
    """Train a few steps in every way that may be the fastest, each in a process of its own, and keep a table."""
    from bertwright.bench.search import best, search, sizes
    from bertwright.bench.table import open_table
    from bertwright.bench.trial import Tried

    loaded, folder = load_recipe(recipe, overrides, out)
    if write and write.exists():
        raise RecipeError(f"--write {write} exists already. Give the name of a new file, or remove it first.")
    tried = Tried(loaded, phase, ranks, steps, limit)
    lines = [(name, again) for name in _engines(engine, tried) for again in (False, True)]
    first = _first_size(tried)
    tried_sizes = sorted(micro_batch) if micro_batch else sizes(tried.share, first)
    if tried_sizes[-1] > tried.share:
        raise RecipeError(f"--micro-batch {tried_sizes[-1]}: a rank has {tried.share} sequences a step. Give fewer.")
    with Terminal() as log, open_table(folder, tried) as table, ExitStack() as stack:

        @cache  # once, and only where something is left to try
        def prepared() -> tuple[Tried, Path]:
            return stack.enter_context(_prepared(tried, folder, table.folder, log.say))

        def attempted(candidate: Candidate) -> Trial:
            if kept := table.trials.get(candidate):
                return kept
            rehearsed, data = prepared()
            log.say(f"autotune: {_words(candidate)}")
            return table.keep(_attempt(rehearsed, candidate, data))

        trials = list(search(lines, tried_sizes, attempted))
    fastest = best(trials)
    if fastest and write:
        _write(write, recipe, overrides or [], fastest, tried)
    _print(trials, fastest, tried, table.file, as_json)
    if fastest is None:
        raise DataError(
            "autotune: nothing could be trained. The table says why; give a smaller recipe, or more memory."
        )


def _engines(asked: Sequence[str] | None, tried: Tried) -> list[str]:
    """The engines to try."""
    known = ["auto"] if tried.ranks == 1 else ["ddp", "zero", "fsdp"]
    if tried.ranks > 1 and find_spec("deepspeed") and tried.recipe.optim.kind == "adamw":
        known.append("deepspeed")
    if unknown := [name for name in asked or () if name not in known]:
        raise RecipeError(
            f"--engine {unknown[0]}: with {tried.ranks} ranks and this recipe there are {', '.join(known)}."
        )
    return list(asked or known)


def _first_size(tried: Tried) -> int:
    """The smallest micro-batch to try: a sixteenth of what is forecast to fit."""
    from bertwright.core.memory import memory_size
    from bertwright.train.sizes import computing_of, fitting_sequences

    phases = tried.recipe.train.phases
    if tried.phase >= len(phases):
        raise RecipeError(f"--phase {tried.phase}: the recipe has phases 0 to {len(phases) - 1}.")
    config = phases[tried.phase]
    if config.packing or config.micro_tokens:
        name = "packing" if config.packing else "micro_tokens"
        raise RecipeError(
            f"train.phases.{tried.phase}.{name} decides how many sequences a forward pass has, and autotune tries "
            f"micro_batch. Leave {name} out: train.phases.{tried.phase}.{name}="
        )
    computing = computing_of(tried.recipe.train, tried.recipe.optim, tried.ranks, gpu=False)
    return max(1, fitting_sequences(tried.recipe.network(), config, computing, memory_size() / tried.ranks) // 16)


@contextmanager
def _prepared(tried: Tried, run: Path, folder: Path, say: Callable[[str], None]) -> Iterator[tuple[Tried, Path]]:
    """What is tried with the examples of the run, or of a sample of its text, and a folder with them."""
    from bertwright.pipeline.rehearsal import link, rehearsal, remove

    scratch = make_folder(folder / "scratch")
    try:
        planned = rehearsal(tried.recipe, run, make_folder(scratch / "sources"))
        say(f"autotune: with {planned.text}")
        data = make_folder(scratch / "data")
        link(planned.made, run, data)
        if "examples" not in planned.made:
            planned.recipe.write(scratch / "data.toml")
            command = [sys.executable, "-m", "bertwright.cli", "run", str(scratch / "data.toml"), "--until", "examples"]
            done = subprocess.run([*command, "--out", str(data)], capture_output=True, text=True, check=False)
            if done.returncode:
                raise DataError(f"autotune: the examples could not be made: {done.stderr.strip().splitlines()[-1]}")
        yield replace(tried, recipe=planned.recipe), data
    finally:
        remove(scratch)


def _attempt(tried: Tried, candidate: Candidate, data: Path) -> Trial:
    """A trial in a folder of its own, which is removed."""
    from bertwright.bench.trial import attempt
    from bertwright.pipeline.rehearsal import PREPARED, link, remove

    folder = make_folder(data.parent / "trial")
    try:
        link(tuple(name for name in PREPARED if (data / name).exists()), data, folder)
        return attempt(tried, candidate, folder)
    finally:
        remove(folder)


def _words(candidate: Candidate) -> str:
    again = ", activations checkpointed" if candidate.checkpoint_activations else ""
    return f"{candidate.engine}, micro-batch {candidate.micro_batch}{again}"


def _write(file: Path, recipe: Path, overrides: Sequence[str], fastest: Trial, tried: Tried) -> None:
    """The recipe as it was given, with its preset, its overrides and the fastest keys."""
    import tomli_w

    from bertwright.recipe import Written

    keys = [f"{key}={json.dumps(value)}" for key, value in fastest.candidate.keys(tried.phase).items()]
    written = Written.read(recipe, [*overrides, *keys])
    written.validated().check(str(file), ranks=tried.ranks)
    speed = f"{tried.recipe.train.phases[tried.phase].batch / fastest.seconds:,.1f} sequences/s"
    head = f"# {recipe} with what bench autotune found for phase {tried.phase} on {tried.ranks} ranks: {speed}.\n\n"
    write_atomic(file, (head + tomli_w.dumps(written.values)).encode())


def _print(trials: Sequence[Trial], fastest: Trial | None, tried: Tried, file: Path, as_json: bool) -> None:
    batch = tried.recipe.train.phases[tried.phase].batch
    if as_json:
        keys = fastest.candidate.keys(tried.phase) if fastest else None
        print(json_line({"best": keys, "table": str(file), "trials": [asdict(trial) for trial in trials]}))
        return
    rows = [_row(trial, batch, trial is fastest) for trial in trials]
    print(visible("\n".join(columns(HEAD, rows))))
    if fastest:
        print(" ".join(f"{key}={json.dumps(value)}" for key, value in fastest.candidate.keys(tried.phase).items()))


def _row(trial: Trial, batch: int, fastest: bool) -> tuple[str, ...]:
    candidate, numbers = trial.candidate, ("–", "–", "–", "–")
    if trial.outcome == "trained":
        speed, memory = f"{batch / trial.seconds:,.1f}", f"{trial.memory_bytes / 1e9:.2f}"
        numbers = (f"{trial.passes}", f"{trial.seconds:.3f}", speed, memory)
    said = "fastest" if fastest else trial.outcome + (f": {trial.why}" if trial.why else "")
    again = "yes" if candidate.checkpoint_activations else "no"
    return (candidate.engine, again, f"{candidate.micro_batch:,}", *numbers, said)
