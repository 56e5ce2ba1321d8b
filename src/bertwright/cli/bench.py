"""`bench`: measure this machine, compared with other programs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertwright.cli.autotune import autotune
from bertwright.cli.option_groups import grouped
from bertwright.cli.options import Json
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import columns
from bertwright.core.errors import MissingExtraError, RecipeError

if TYPE_CHECKING:
    from bertwright.bench.run import Measured
    from bertwright.bench.workload import Precision, Side

verbs = typer.Typer(
    name="bench",
    help="Measure the speed on this machine, also compared with other programs.",
    no_args_is_help=True,
    add_completion=False,
)
VERBS = {"bench": verbs}
SIDES: dict[str, tuple[Side, ...]] = {"hf": ("bertwright", "trainer", "trainer-tuned"), "none": ("bertwright",)}
verbs.command("autotune")(autotune)
HEAD = (
    *("workload", "side", "precision", "s/step", "fastest", "slowest", "CPU s"),
    *("speed-up", "worst", "best", "CPU speed-up", "floor", "to fp32"),
)


@dataclass(frozen=True)
class Sides:
    """What to train, and the peer to compare with."""

    workload: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="One of full-128, pairs-128, half-512, base-128; default: all."),
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
        float, typer.Option(metavar="N", min=0, max=0.9, help="Dropout of hidden states, for all sides.")
    ] = 0.1
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
@grouped
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
        print("\n".join(columns(HEAD, [_row(each) for each in measured])))


def _precisions(wanted: Literal["auto", "fp32", "bf16", "both"]) -> tuple[Precision, ...]:
    """The precisions of every side; by default none that the processor takes ten times as long for."""
    from bertwright.estimate.machine_facts import bf16_units

    if wanted == "auto":
        wanted = "both" if bf16_units() else "fp32"
    return ("fp32", "bf16") if wanted == "both" else (wanted,)


def _row(measured: Measured) -> tuple[str, ...]:
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
