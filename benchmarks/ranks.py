"""What a second physical core brings to a training, as a second rank and as a second thread, beside the forecast.

    python benchmarks/ranks.py [--rounds 3] [--steps 8] [--key KEY=VALUE ...] [--folder FOLDER]

Trains the recipe `smoke` with a network of 4 layers and width 256 on 64 sequences of 64 tokens per step: 1 rank on 1
core, 2 ranks on 1 core each, and 1 process with 2 threads on 2 cores. The three take turns, in processes that are bound
to one hardware thread of each core. A time is the median over all steps of all rounds, without the first step of each.
Efficiency is the time on one core divided by twice the time on two. Run it on cores that nothing else uses.
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from bertwright import Recipe
from bertwright.cli.per_socket import train_on
from bertwright.core.resources import Processors, _core
from bertwright.estimate.known_data import read_data
from bertwright.estimate.machine import HardwareConfig, machine_of
from bertwright.estimate.step_time import step_time
from bertwright.estimate.work import phase_work
from bertwright.shipped import find_recipe
from bertwright.train.memory.rank_memory import computing_of
from bertwright.train.monitor.metrics import read_rows
from run_recipe import linked, run_recipe

KEYS = (
    "model.size=mini", "train.phases.0.length=64", "train.phases.0.batch=64", "train.phases.0.micro_batch=16",
    "train.precision=fp32",
)  # fmt: skip
QUIET = (
    "train.device=cpu", "train.phases.1.steps=1", "train.phases.1.batch=2", "train.phases.0.warmup=0",
    "train.phases.1.warmup=0", "train.log_every=1", "train.heldout_sequences=2", "train.checkpoint_every=0",
)  # fmt: skip
Setting = tuple[str, int, int]
"""A name, the number of ranks, and the cores of each."""
SETTINGS: tuple[Setting, ...] = (
    ("1 rank on 1 core", 1, 1),
    ("2 ranks on 1 core each", 2, 1),
    ("1 process with 2 threads on 2 cores", 1, 2),
)


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8, help="steps that are timed in each training")
    parser.add_argument("--key", action="append", default=[], metavar="KEY=VALUE", help="further keys of the recipe")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args(arguments or None)
    cores = physical_cores()
    if len(cores) < 2:
        raise SystemExit(f"two physical cores are needed, but this process may use only {len(cores)}")
    keys = [*KEYS, *QUIET, f"train.phases.0.steps={given.steps + 1}", *given.key]
    times: dict[Setting, list[float]] = {setting: [] for setting in SETTINGS}
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        made = Path(name) / "made"
        run_recipe(find_recipe("smoke"), keys, made, "examples")
        for number in range(given.rounds):
            for setting, found in times.items():
                out = Path(name) / f"{setting[1]}x{setting[2]}-{number}"
                out.mkdir()
                linked(made, out)
                train_on(groups(setting, cores), ["train", "smoke", *keys, "--out", str(out)])
                found += step_seconds(out / "train" / "metrics.jsonl")
    print(table(times, Recipe.load("smoke", keys)))


def physical_cores() -> list[int]:
    """The first hardware thread that this process may use of each physical core."""
    first: dict[int, int] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        first.setdefault(_core(cpu), cpu)
    return sorted(first.values())


def groups(setting: Setting, cores: Sequence[int]) -> list[Processors]:
    """The processors of each rank."""
    name, ranks, each = setting
    return [Processors(name, tuple(cores[rank * each : (rank + 1) * each]), each) for rank in range(ranks)]


def step_seconds(metrics: Path) -> list[float]:
    """Seconds of each step of the first phase after its first one."""
    ends = [row["seconds"] for row in read_rows(metrics) if row["phase"] == 0]
    return [after - before for before, after in pairwise(ends)]


def forecast(recipe: Recipe, ranks: int, each: int) -> float:
    """Seconds of a step of the first phase in the model of docs/scaling.md."""
    machine = machine_of(HardwareConfig(ranks=ranks, cores=ranks * each))
    padded = computing_of(recipe.train, recipe.optim, ranks, gpu=False).padded
    work = phase_work(recipe, 0, read_data(recipe, {}))
    return step_time(recipe, work, machine, padded).seconds


def table(times: dict[Setting, list[float]], recipe: Recipe) -> str:
    """The rows for docs/scaling.md."""
    rows = ["| trained by | seconds per step (least to most) | efficiency | in the model |", "|---|---|---|---|"]
    alone, modelled = median(times[SETTINGS[0]]), forecast(recipe, 1, 1)
    for (name, ranks, each), found in times.items():
        took = f"{median(found):.3f} ({min(found):.3f} to {max(found):.3f})"
        cores = ranks * each
        efficiency = f"{alone / cores / median(found):.1%}", f"{modelled / cores / forecast(recipe, ranks, each):.1%}"
        rows.append(f"| {name} | {took} | {' | '.join(efficiency)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
