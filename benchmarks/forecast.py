"""Forecasts compared with measurements: fourteen short trainings that differ in size, precision, kernel and length.

    python benchmarks/forecast.py                memory and time, some 17 minutes on two idle cores
    python benchmarks/forecast.py --memory       memory only, which other programs do not disturb
    python benchmarks/forecast.py --only base    the cases whose names contain the word

Each case runs the built-in sample, or texts of a few words, in a separate process, started like `bertwright train`, so
its memory includes scoring and checkpoints. The time is forecast twice: from the table of devices, and from the 20
seconds of `bertwright plan --measure`. Targets: memory within 10 %, the measured forecast of the time within 25 %. The
table has the format of docs/results.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from bertwright import Recipe, run
from bertwright.core.files import read_json

STEPS = {"memory": 2, "time": 5}
"""Steps of each training: memory peaks in the first step, and the time leaves the first step out."""
AT_THE_END = ("train.evaluate_every=1000", "train.checkpoint_every=1000")
"""Settings of timed runs: score and save once, at the end, because neither is part of a step."""
SAMPLE = ("corpus.workers=1", "examples.workers=1", "vocab.size=8000", "train.device=cpu", "train.log_every=1")
SHORT = ("train.heldout_sequences=32", "model.max_positions=512")
NO_PAIRS = ("examples.plan=doc-sentences",)
"""For networks without next-sentence prediction."""
CLASSIFIES = 'train.objective={kind="classification", labels=["short", "long"]}'
SHORT_TEXTS = (CLASSIFIES, "examples.passes=", "train.phases.0.masking=", "train.expected=", "evaluate.cloze=")
"""For a classifier of texts that are much shorter than the phase allows (`write_texts`)."""
CASES: dict[str, tuple[str, ...]] = {
    "tiny 64": ("model.size=tiny", "length=64", "batch=256", "micro_batch=128"),
    "tiny 128 muon": (
        "model.size=tiny",
        "optim.kind=muon",
        "length=128",
        "batch=16",
        "micro_batch=0",
    ),
    "mini 128": ("model.size=mini", "length=128", "batch=64", "micro_batch=0"),
    "mini 128 dropout": ("model.size=mini", "model.dropout=0.1", "length=128", "batch=64", "micro_batch=32"),
    "mini 512 padded": ("model.size=mini", "train.attention=padded", "length=512", "batch=16", "micro_batch=0"),
    "mini 512 short texts": (
        *SHORT_TEXTS,
        "model.size=mini",
        "train.attention=padded",
        "model.dropout=0.1",
        "model.attention_dropout=0.1",
        "length=512",
        "batch=256",
        "micro_batch=0",
    ),
    "mini 512 packed": ("model.size=mini", "length=512", "batch=32", "micro_batch=8", "packing=true"),
    "small 128 lamb": (
        "model.size=small",
        "optim.kind=lamb",
        "optim.betas=",
        "length=128",
        "batch=32",
        "micro_batch=16",
    ),
    "small 256 attention dropout": (
        "model.size=small",
        "model.attention_dropout=0.1",
        "length=256",
        "batch=8",
        "micro_batch=0",
    ),
    "small 128 bf16": (
        "model.size=small",
        'train.precision={kind="bf16", allow_slow=true}',
        "length=128",
        "batch=8",
        "micro_batch=0",
    ),
    "small 512 checkpointed": (
        "model.size=small",
        "train.checkpoint_activations=true",
        "length=512",
        "batch=16",
        "micro_batch=0",
    ),
    "modern base 128": (*NO_PAIRS, "model.kind=modern", "model.size=base", "length=128", "batch=8", "micro_batch=4"),
    "distilbert base 128": (
        *NO_PAIRS,
        "model.kind=distilbert",
        "model.size=base",
        "length=128",
        "batch=8",
        "micro_batch=0",
    ),
    "base 128": ("model.size=base", "length=128", "batch=8", "micro_batch=0"),
}
WANTED = {"memory": 0.10, "seconds": 0.25}
"""The largest allowed error of a forecast, relative to the measurement."""
PHASE = ("length", "batch", "micro_batch", "packing")


def main() -> None:
    """Measure the requested cases and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--memory", action="store_true", help="memory alone")
    options.add_argument("--only", default="", help="cases whose names have this word")
    options.add_argument("--json", action="store_true", help="print JSON")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        prepared, texts = Path(scratch) / "prepared", write_texts(Path(scratch) / "texts.tsv")
        steps = STEPS["memory" if asked.memory else "time"]
        beside = () if asked.memory else AT_THE_END
        rows = [
            measured(name, [*overrides(name, steps, texts), *beside], prepared, timed=not asked.memory)
            for name in CASES
            if asked.only in name
        ]
    if not rows:
        options.error(f"--only {asked.only}: no case has that word in its name. They are: {', '.join(CASES)}.")
    print(json.dumps(rows, indent=1) if asked.json else "\n".join(lines(rows, asked.memory)))


def overrides(name: str, steps: int, texts: Path) -> list[str]:
    """The overrides of a case, for the recipe `demo`; a classifier reads the file `texts`."""
    own = [f"train.phases.0.{key}" if key.partition("=")[0] in PHASE else key for key in CASES[name]]
    own += [f"train.phases.0.data={texts}"] if CLASSIFIES in own else []
    return [*SAMPLE, *SHORT, f"train.phases.0.steps={steps}", *own]


def write_texts(file: Path) -> Path:
    """Write 2,000 labelled texts of 3 to 45 words of the sample, most of them short."""
    random = Random(1)
    words = ("a", "the", "fox", "bear", "owl", "garden", "forest", "baker", "town", "bread", "works", "goes", "in")
    sizes = (min(45, 3 + int(random.expovariate(0.15))) for _ in range(2000))
    lines = (f"{'short' if size < 9 else 'long'}\t{' '.join(random.choices(words, k=size))}\n" for size in sizes)
    file.write_text("label\ttext\n" + "".join(lines), encoding="utf-8")
    return file


def measured(name: str, keys: list[str], prepared: Path, timed: bool) -> dict[str, Any]:
    """The forecasts of a case and its measurements."""
    folder = prepared.with_name(name.replace(" ", "-"))
    recipe = Recipe.load("demo", keys)
    if prepared.exists():
        shutil.copytree(prepared, folder)
    run(recipe, folder, ["corpus", "vocab", "examples"])
    if not prepared.exists():
        for stage in ("corpus", "vocab"):
            shutil.copytree(folder / stage, prepared / stage)
        shutil.copy(folder / ".lock", prepared)
    words = ["demo", *keys, "--out", str(folder)]
    by_table = json.loads(output("plan", *words, "--json", cache=prepared))["phases"][0]["step_seconds"]
    if timed:
        output("plan", *words, "--measure", cache=prepared)
    output("train", *words, cache=prepared)
    plan, train = read_json(folder / "forecast.json"), read_json(folder / "train" / "manifest.json")["counts"]
    rows = [json.loads(line) for line in (folder / "train" / "metrics.jsonl").read_text().splitlines()]
    seconds = [after["seconds"] - before["seconds"] for before, after in pairwise(rows)]
    shutil.rmtree(folder)
    print(f"{name}: done", file=sys.stderr)
    return {
        "case": name,
        "parameters": train["parameters"],
        "memory_forecast": plan["memory_bytes"],
        "memory": train["peak_memory_bytes"],
        "seconds_by_table": by_table,
        "seconds_forecast": plan["phases"][0]["step_seconds"],
        "seconds": statistics.median(seconds),
        "parts": plan["phases"][0]["memory"],
    }


def output(*words: str, cache: Path) -> str:
    """What a command prints, with its own folder of measurements: it must not know those of other runs."""
    command = [sys.executable, "-m", "bertwright.cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": str(cache)})
    if done.returncode:
        sys.exit(f"bertwright {' '.join(words)} ended with {done.returncode}.\n{done.stderr}")
    return done.stdout


def lines(rows: list[dict[str, Any]], memory: bool) -> Iterator[str]:
    """The table, then the median and the largest error of the forecasts."""
    kinds = ("memory",) if memory else ("memory", "seconds")
    heads = {
        "memory": ["memory forecast", "measured", "ratio"],
        "seconds": ["time by table", "time after --measure", "measured", "ratio"],
    }
    columns = ["case", "parameters", *(head for kind in kinds for head in heads[kind])]
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for row in rows:
        cells = [
            row["case"],
            f"{row['parameters']:,}",
            *_compared(row, "memory", lambda value: f"{value / 1e6:,.0f} MB"),
        ]
        if not memory:
            in_seconds = "{:.3g} s".format
            cells += [in_seconds(row["seconds_by_table"]), *_compared(row, "seconds", in_seconds)]
        yield f"| {' | '.join(cells)} |"
    for kind in kinds:
        off = {row["case"]: abs(row[f"{kind}_forecast"] / row[kind] - 1) for row in rows}
        worst, within = max(off, key=lambda case: off[case]), sum(value <= WANTED[kind] for value in off.values())
        yield (
            f"\n{kind}: {within} of {len(off)} within {WANTED[kind]:.0%}; off by {statistics.median(off.values()):.0%} "
            f"in the middle and by {off[worst]:.0%} at most ({worst})"
        )


def _compared(row: dict[str, Any], kind: str, form: Callable[[float], str]) -> list[str]:
    expected, found = row[f"{kind}_forecast"], row[kind]
    return [form(expected), form(found), f"{found / expected:.2f}"]


if __name__ == "__main__":
    main()
