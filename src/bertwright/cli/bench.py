"""`bench train`: measure this machine, compared with other programs; `bench autotune`: find the micro-batch, engine and
checkpointing that train a recipe fastest on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tomli_w
import typer

from bertwright.cli.options import Json, Run, load_recipe, option_groups
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import columns, json_line, visible
from bertwright.core.errors import DataError, MissingExtraError, RecipeError
from bertwright.core.files import refuse_unwritable, write_atomic

if TYPE_CHECKING:
    from bertwright.bench.run import Measurement
    from bertwright.bench.workload import Precision, Side
    from bertwright.trial.attempt import Tried
    from bertwright.trial.search import Trial

verbs = typer.Typer(
    name="bench",
    help="Measure the speed on this machine, also compared with other programs.",
    no_args_is_help=True,
    add_completion=False,
)
SIDES: dict[str, tuple[Side, ...]] = {"hf": ("bertwright", "trainer", "trainer-tuned"), "none": ("bertwright",)}
HEAD = (
    *("workload", "side", "precision", "s/step", "fastest", "slowest", "CPU s"),
    *("speed-up", "worst", "best", "CPU speed-up", "floor", "to fp32"),
)


@dataclass(frozen=True)
class Sides:
    """What to train, and the peer to compare with."""

    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="One of full-128, pairs-128, half-512, base-128, modern-128, modern-1024, phrases-128; default: all.",
        ),
    ] = None
    peer: Annotated[
        Literal["hf", "none"],
        typer.Option(help="Compare with Hugging Face's Trainer, untuned and tuned (hf), or with nothing (none)."),
    ] = "none"


@dataclass(frozen=True)
class Numbers:
    """Settings with which every side trains."""

    precision: Annotated[
        Literal["auto", "fp32", "bf16", "both"],
        typer.Option(
            help="Precision of every side; both: every side in fp32 and in bf16, in the same run; auto: both if this "
            "processor has units for bfloat16, else fp32."
        ),
    ] = "auto"
    dropout: Annotated[
        float | None,
        typer.Option(
            metavar="N", min=0, max=0.9, help="Dropout of hidden states, for all sides; default: 0.1, ModernBERT 0."
        ),
    ] = None
    attention_dropout: Annotated[
        float,
        typer.Option(
            metavar="N", min=0, max=0.9, help="Dropout of attention weights, for all sides; the paper uses 0.1."
        ),
    ] = 0.0
    threads: Annotated[int, typer.Option(metavar="N", min=1, help="Number of threads of each side.")] = 2


@dataclass(frozen=True)
class Blocks:
    """How much to measure."""

    rounds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of blocks of steps of each side; the sides take turns.")
    ] = 3
    steps: Annotated[int, typer.Option(metavar="N", min=1, help="Number of steps in a block.")] = 5


@verbs.command("train")
@option_groups
def train(sides: Sides, numbers: Numbers, blocks: Blocks, as_json: Json = False) -> None:
    """Train made-up text in turn with a peer: median, fastest and slowest step, and how many times as fast ours is."""
    from bertwright.bench.run import Setting, bench
    from bertwright.bench.workload import WORKLOADS, Training

    wanted = sides.workload or list(WORKLOADS)
    if unknown := [name for name in wanted if name not in WORKLOADS]:
        raise RecipeError(f"--workload {unknown[0]}: there is no such workload; use one of {', '.join(WORKLOADS)}")
    if sides.peer == "hf" and not all(map(find_spec, ("transformers", "accelerate"))):
        raise MissingExtraError("--peer hf needs transformers and accelerate: pip install 'bertwright[bench]'")
    # In the order of the table and each once, however they were typed.
    names = [name for name in WORKLOADS if name in wanted]
    precisions = _precisions(numbers.precision)
    training = Training(threads=numbers.threads, dropout=numbers.dropout, attention_dropout=numbers.attention_dropout)
    setting = Setting(precisions, training, blocks.rounds, blocks.steps)
    with Terminal() as log:
        measured = bench(names, SIDES[sides.peer], setting, log.say)
    if as_json:
        print(json.dumps([asdict(each) for each in measured]))
    else:
        print("\n".join(columns(HEAD, [_row(each) for each in measured], 2)))


def _precisions(wanted: Literal["auto", "fp32", "bf16", "both"]) -> tuple[Precision, ...]:
    """The precisions of every side; by default none that the processor takes ten times as long for."""
    from bertwright.estimate.machine_facts import bf16_units

    if wanted == "auto":
        wanted = "both" if bf16_units() else "fp32"
    return ("fp32", "bf16") if wanted == "both" else (wanted,)


def _row(measured: Measurement) -> tuple[str, ...]:
    numbers = (measured.seconds, measured.fastest, measured.slowest, measured.processor_seconds)
    times = (measured.times_as_fast, measured.times_lowest, measured.times_highest, measured.processor_ratio)
    ratios = (*times, measured.floor_ratio, measured.times_fp32)
    return (
        measured.workload,
        measured.side,
        measured.precision,
        *(f"{number:.3f}" for number in numbers),
        *("–" if ratio is None else f"{ratio:.2f} ×" for ratio in ratios),
    )


TRIAL_HEAD = ("engine", "checkpointed", "micro-batch", "passes", "s/step", "sequences/s", "memory GB", "outcome")


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


@verbs.command("autotune")
@option_groups
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
    from bertwright.trial.autotune import engines_to_try, open_table, sizes_to_try, trial_examples
    from bertwright.trial.search import best

    loaded, folder = load_recipe(of.recipe, of.overrides, of.out)
    if write and write.exists():
        raise RecipeError(f"--write {write} exists already. Give the name of a new file, or remove it first.")
    if write:
        refuse_unwritable(write)
    tried = Tried(loaded, timing.phase, timing.ranks, timing.steps, timing.limit)
    candidates = engines_to_try(tried, among.engine), sizes_to_try(tried, among.micro_batch)
    with Terminal() as log, open_table(folder, tried, tuning.machine_here(tried)) as table:
        trials = tuning.autotune(tried, *candidates, table, partial(trial_examples, loaded, folder, log), log)
    fastest = best(trials)
    if fastest and write:
        _write_fastest(write, of, fastest, tried)
    _print_trials(trials, fastest, tried, table.file, as_json)
    if fastest is None and as_json:  # the table says it, and a program reads one value
        raise typer.Exit(DataError.exit_code)
    if fastest is None:
        raise DataError(
            "autotune: no configuration could be trained. The table gives the reasons; use a smaller recipe, or more "
            "memory."
        )


def _write_fastest(file: Path, of: Run, fastest: Trial, tried: Tried) -> None:
    """Write the recipe as given, with its preset, its overrides and the fastest keys."""
    from bertwright.recipe import Recipe
    from bertwright.recipe_file import Written

    written = Written.read(of.recipe, [*(of.overrides or []), *_overrides(fastest, tried)], Recipe)
    # Before it is written, because it must load with these ranks.
    Recipe.from_values(written).check(str(file), ranks=tried.ranks)
    speed = f"{tried.recipe.train.phases[tried.phase].batch / fastest.seconds:,.1f} sequences/s"
    head = (
        f"# {of.recipe} with the configuration that bench autotune found for phase {tried.phase} on {tried.ranks} "
        f"ranks: {speed}.\n# {_changes_line(fastest, tried)}\n\n"
    )
    write_atomic(file, (head + tomli_w.dumps(written.values)).encode())


def _print_trials(trials: Sequence[Trial], fastest: Trial | None, tried: Tried, file: Path, as_json: bool) -> None:
    batch = tried.recipe.train.phases[tried.phase].batch
    if as_json:
        from bertwright.trial.autotune import keys_of

        keys = keys_of(tried, fastest.candidate) if fastest else None
        print(json_line({"best": keys, "table": str(file), "trials": [asdict(trial) for trial in trials]}))
        return
    rows = [_trial_row(trial, batch, trial is fastest) for trial in trials]
    print(visible("\n".join(columns(TRIAL_HEAD, rows, 2))))
    if fastest:
        print(visible(_changes_line(fastest, tried)))
        print(" ".join(_overrides(fastest, tried)))


def _overrides(fastest: Trial, tried: Tried) -> list[str]:
    from bertwright.trial.autotune import keys_of

    return [f"{key}={json.dumps(value)}" for key, value in keys_of(tried, fastest.candidate).items()]


def _changes_line(fastest: Trial, tried: Tried) -> str:
    """One line with what the fastest configuration changes in the recipe."""
    from bertwright.trial.autotune import changes_of

    return f"changed: {'; '.join(changes_of(tried, fastest.candidate)) or 'nothing'}"


def _trial_row(trial: Trial, batch: int, fastest: bool) -> tuple[str, ...]:
    candidate, numbers = trial.candidate, ("–", "–", "–", "–")
    if trial.outcome == "trained":
        speed, memory = f"{batch / trial.seconds:,.1f}", f"{trial.memory_bytes / 1e9:.2f}"
        numbers = (f"{trial.passes}", f"{trial.seconds:.3f}", speed, memory)
    outcome = "fastest" if fastest else trial.outcome + (f": {trial.why}" if trial.why else "")
    again = "yes" if candidate.checkpoint_activations else "no"
    return (candidate.engine, again, f"{candidate.micro_batch:,}", *numbers, outcome)
