"""The page that compares runs: a table of scores, curves over steps, tokens and hours, settings that differ, and
warnings where they cannot be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.files import make_folder, write_atomic
from bertwright.core.numbers import duration, number, operations, percent, short_count
from bertwright.page.chart import Chart, Format, Series, figure
from bertwright.page.markup import Content, Element, b, code, div, element, p, table
from bertwright.report.compared import NUMBERS, SCORED, Run, differing_settings, read_runs
from bertwright.report.page import Section, document, time_of

PAGE = "comparison.html"


class _Axis(NamedTuple):
    key: str
    """Key of the value in a metrics row."""
    name: str
    title: str
    label: str
    scale: float
    """Divisor of the row's value."""
    format: Format


_AXES = (
    _Axis("total_steps", "steps", "Over optimizer steps", "optimizer step", 1.0, "{:,.0f}".format),
    _Axis("tokens_seen", "tokens", "Over tokens", "millions of tokens", 1e6, "{:,.4g}".format),
    _Axis("seconds", "hours", "Over hours of training", "hours", 3600.0, "{:,.3g}".format),
)
_CURVES = (
    ("heldout_mlm_loss", "Held-out loss", "loss (nats)", "heldout", "{:.3g}".format),
    ("mlm_loss", "Training loss", "loss (nats)", "train", "{:.3g}".format),
    ("heldout_mlm_accuracy", "Held-out accuracy", "accuracy", "heldout", percent),
    ("heldout_classification_loss", "Held-out loss of classes", "loss (nats)", "heldout", "{:.3g}".format),
    ("classification_loss", "Training loss of classes", "loss (nats)", "train", "{:.3g}".format),
    ("heldout_classification_accuracy", "Held-out accuracy of classes", "accuracy", "heldout", percent),
    ("heldout_regression_loss", "Held-out squared error", "squared error", "heldout", "{:.3g}".format),
    ("regression_loss", "Training squared error", "squared error", "train", "{:.3g}".format),
    ("heldout_tagging_loss", "Held-out loss of tags", "loss (nats)", "heldout", "{:.3g}".format),
    ("tagging_loss", "Training loss of tags", "loss (nats)", "train", "{:.3g}".format),
    ("heldout_tagging_accuracy", "Held-out accuracy of tags", "accuracy", "heldout", percent),
    ("heldout_start_loss", "Held-out loss of first tokens", "loss (nats)", "heldout", "{:.3g}".format),
    ("start_loss", "Training loss of first tokens", "loss (nats)", "train", "{:.3g}".format),
    ("heldout_end_loss", "Held-out loss of last tokens", "loss (nats)", "heldout", "{:.3g}".format),
    ("end_loss", "Training loss of last tokens", "loss (nats)", "train", "{:.3g}".format),
)


def write_comparison(folders: Sequence[Path], out: Path) -> tuple[Path, dict[str, Any]]:
    """Write the page that compares the runs in these folders into `out`. Returns its path and its numbers.

    Reads and writes nothing else. The runs may still be training. Raises the errors of `read_runs`.
    """
    runs = read_runs(folders)
    written = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    path = make_folder(out) / PAGE
    write_atomic(path, comparison(runs, written).encode(errors="backslashreplace"))
    facts = [{"name": run.name, "finished": run.finished, **run.scores, **run.numbers} for run in runs]
    return path, {"runs": facts, "settings": differing_settings(runs)}


def comparison(runs: Sequence[Run], written: str) -> str:
    """The complete page; `written` is the current time (ISO, UTC)."""
    sections: list[Section] = [
        ("scores", "Scores", _scores(runs)),
        *((axis.name, axis.title, _charts(runs, axis)) for axis in _AXES),
        ("settings", "Settings that differ", _settings(runs)),
    ]
    names = [(", " if index else "", b(run.name)) for index, run in enumerate(runs)]
    introduction = p(f"{len(runs)} runs of bertwright: ", names, ". Written ", time_of(written), ".")
    return document("Runs compared", introduction, sections, list(warnings(runs)))


def _scores(runs: Sequence[Run]) -> Element:
    """A table with a row for each score and ledger number and a column for each run; the best score is bold where
    scores are comparable."""
    rows: list[tuple[Content, ...]] = []
    for name in (*SCORED, *NUMBERS):
        values = [(run.scores if name in SCORED else run.numbers).get(name) for run in runs]
        known = [value for value in values if value is not None]
        if not known:
            continue
        score = SCORED.get(name)
        judged = score is not None and (comparable(runs) or not score.per_token)
        best = score.best(known) if score and score.best and judged and len(set(known)) > 1 else None
        cells = (_cell(name, value) for value in values)
        shown = [b(c) if v is not None and v == best else c for c, v in zip(cells, values, strict=True)]
        title = score.title if score else _TITLES.get(name, name.replace("_", " "))
        rows.append((title, *shown))
    return table(("", *(run.name for run in runs)), rows, "compared")


_TITLES = {"tflops_done": "operations of the model", "hours": "time over all starts"}


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if name.endswith(("accuracy", "majority", "f1")):
        return percent(value)
    if name == "hours":
        return duration(value * 3600)
    if name == "tflops_done":
        return operations(value)
    if name in ("tokens_seen", "sequences_seen", "parameters", "tokens_per_second"):
        return short_count(value)
    return f"{value:.3f}" if name in SCORED else number(value)


def _charts(runs: Sequence[Run], axis: _Axis) -> Element:
    charts = []
    for key, title, label, style, shown in _CURVES:
        series = [
            Series(run.name, _points(run.rows, axis, key), f"{style} run-{index}") for index, run in enumerate(runs)
        ]
        if any(each.points for each in series):
            charts.append(Chart(title, label, "", series, shown, x_label=axis.label, x_format=axis.format))
    return div(map(figure, charts), class_="charts")


def _points(rows: Sequence[Mapping[str, Any]], axis: _Axis, key: str) -> list[tuple[float, float]]:
    known = (row for row in rows if row.get(key) is not None and row.get(axis.key) is not None)
    return [(row[axis.key] / axis.scale, float(row[key])) for row in known]


def _settings(runs: Sequence[Run]) -> Content:
    rows = [(code(key), *(code(value or "–") for value in values)) for key, values in differing_settings(runs).items()]
    if not rows:
        return p("None: the runs have the same settings, inputs and machine.")
    about = "The settings are those stored with the results of the stages, including defaults; "
    shown = table(("setting", *(run.name for run in runs)), rows, "compared")
    return p(about, element("i", "made of"), " are fingerprints."), shown


def comparable(runs: Sequence[Run]) -> bool:
    """Whether the scores of masked tokens were taken on the same tokens, so that one of them is the best."""
    return _same_vocabulary(runs) and _same_conditions(runs)


def warnings(runs: Sequence[Run]) -> Iterator[Content]:
    """Warnings to read before comparing any numbers."""
    tokens = any("mlm_loss" in run.scores for run in runs)
    if tokens and not _same_vocabulary(runs):
        yield (
            b("The vocabularies differ."),
            " Loss and accuracy are measured per token, and different vocabularies "
            "have different tokens, so these numbers cannot be compared.",
        )
    elif len({run.settings.get("train made of: examples", "") for run in runs}) > 1:
        yield (
            b("The examples differ."),
            " The held-out texts may differ, so scores can be compared only as far as the texts can.",
        )
    if tokens and not _same_conditions(runs):
        known = ((run.name, *run.scored_on) for run in runs if run.scored_on)
        each = "; ".join(f"{name}: mask rate {rate:g}, length {length:,}" for name, rate, length in known)
        yield (
            b("The scores were taken under different conditions"),
            f" ({each}), so these numbers cannot be "
            "compared. The stage evaluate scores finished runs alike if evaluate.mask_rate and evaluate.length are "
            "the same.",
        )
    if tokens and len({rates for run in runs if (rates := _mask_rates(run))}) > 1:
        yield (
            b("The mask rates of training differ."),
            " The more tokens are masked, the harder they are to predict, so "
            "the curves of loss and accuracy cannot be compared.",
        )
    if under_way := [run.name for run in runs if not run.finished]:
        yield (
            b("Not finished:"),
            f" {', '.join(under_way)}. Numbers are those of the last row, settings those "
            "of the newest checkpoint, which does not say how long phases are.",
        )


def _same_vocabulary(runs: Sequence[Run]) -> bool:
    return len({run.vocabulary for run in runs}) == 1


def _same_conditions(runs: Sequence[Run]) -> bool:
    """Whether the scores of masked tokens were taken at one mask rate and length, as far as these are known."""
    return len({run.scored_on for run in runs if run.scored_on}) <= 1


def _mask_rates(run: Run) -> frozenset[str]:
    """The mask rates of the phases; empty if unknown."""
    phases = (key for key in run.settings if key.startswith("train.phases.") and key.endswith(".masking.rate"))
    return frozenset(run.settings[key] for key in phases)
