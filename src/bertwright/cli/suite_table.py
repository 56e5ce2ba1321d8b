"""The table of the suites `glue` and `hulu`: a row for each model, a column for each task."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from bertwright.cli.terminal import Terminal
from bertwright.cli.text import columns, json_line, terminal_width, wrap

if TYPE_CHECKING:
    from bertwright.finetune.suites import SuiteResults

_METRICS = {"matthews": "MCC", "accuracy": "acc", "f1": "F1", "pearson": "r"}
_MODEL = 18
"""Characters of a model's name, so that GLUE's nine tasks and the mean fit in 80 columns."""


def print_suite(suite: str, models: list[str], data: Path | None, out: Path, seeds: int, as_json: bool) -> None:
    """Run a suite, and print its table or its scores as JSON."""
    from bertwright.finetune.suites import run_suite

    with Terminal() as log, redirect_stdout(sys.stderr):
        results = run_suite(suite, [Path(model) for model in models], data, out, seeds, log)
    if as_json:
        print(json_line({"folder": str(out), **results}))
    else:
        print(*suite_lines(results), out, sep="\n")


def suite_lines(results: SuiteResults) -> Iterator[str]:
    """The table, in percent; below each model the sample standard deviation of its seeds; then what it leaves out."""
    from bertwright.finetune.suites import NOT_AVERAGED, PUBLISHED

    tasks, models = results["tasks"], results["models"]
    first = next(iter(models.values()))
    heads = [_METRICS.get(first[task]["metric"], first[task]["metric"]) for task in tasks]
    scores = {name: {task: each["scores"][each["metric"]] for task, each in of.items()} for name, of in models.items()}
    constant = next(iter(scores.values()))
    rows = [
        ("", *heads, ""),
        _row("constant answer", {task: constant[task]["baseline"] for task in tasks}, tasks, None),
    ]
    for name, of_model in scores.items():
        means = {task: spread["mean"] for task, spread in of_model.items()}
        rows.append(_row(name, means, tasks, results["means"].get(name)))
        deviations = {task: spread["deviation"] for task, spread in of_model.items()}
        if any(each is not None for each in deviations.values()):
            rows.append(_row("  ±", deviations, tasks, None))
    published = PUBLISHED[results["suite"]]
    averaged = [task for task in tasks if task not in NOT_AVERAGED]
    for each in published:
        shares = {task: score / 100 for task, score in each.scores.items()}
        mean = fmean(shares[task] for task in averaged) if averaged and set(averaged) <= set(shares) else None
        rows.append(_row(f"{each.model} *{each.split}", shares, tasks, mean))
    yield from columns(("", *tasks, "mean"), rows)
    yield from _notes(results, seeds=max(len(each["runs"]) for of in models.values() for each in of.values()))


def _notes(results: SuiteResults, seeds: int) -> Iterator[str]:
    from bertwright.finetune.suites import PUBLISHED

    width = terminal_width()
    spread = f", ± of {seeds} seeds is the sample standard deviation" if seeds > 1 else ", of one seed each"
    yield from wrap("", f"Official scores of the held-out (dev) texts in percent{spread}.", width)
    collapsed = [
        f"{name} on {task}: {each['collapsed']} of {len(each['runs'])}"
        for name, of in results["models"].items()
        for task, each in of.items()
        if each["collapsed"]
    ]
    if collapsed:
        yield from wrap("", f"Collapsed runs, with one answer to everything: {'; '.join(collapsed)}.", width)
    if "wnli" in results["tasks"]:
        yield from wrap("", "The mean leaves WNLI out, as Devlin et al. 2019: its dev set is adversarial.", width)
    sources = dict.fromkeys(f"{each.source} ({each.split})" for each in PUBLISHED[results["suite"]])
    if sources:
        text = f"* published, not measured here, by {', '.join(sources)}; scores on test and dev differ by points."
        yield from wrap("", text, width)
    for task, why in results["missing"].items():
        yield from wrap("", f"{task} is left out: {why}.", width)


def _row(name: str, values: Mapping[str, float | None], tasks: list[str], mean: float | None) -> tuple[str, ...]:
    cells = ("" if (value := values.get(task)) is None else f"{100 * value:.1f}" for task in tasks)
    shown = name if len(name) <= _MODEL else f"…{name[1 - _MODEL :]}"
    return shown, *cells, "" if mean is None else f"{100 * mean:.1f}"
