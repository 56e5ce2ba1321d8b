"""Compares the forecast of a run with the measurements in manifests and metrics rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from bertwright.core.artifact import MANIFEST, Artifact
from bertwright.core.manifest import read_manifest
from bertwright.core.numbers import duration, short_count
from bertwright.forecast_shapes import Plan
from bertwright.page.markup import Content, b, p, table
from bertwright.report.facts import Facts


class Grade(NamedTuple):
    """One number of a forecast and its measured value."""

    expected: float
    actual: float

    @property
    def error(self) -> float | None:
        """Relative error: measured / forecast - 1; None if the forecast is 0."""
        return self.actual / self.expected - 1 if self.expected else None


def grades(facts: Facts) -> dict[str, Grade]:
    """Each forecast that has a measurement: seconds of training and other stages, tokens/s, memory, disk.

    Seconds of training and disk are skipped if training had other steps than were forecast.
    """
    plan = facts.forecast
    if plan is None:
        return {}
    train, found = facts.counts("train"), {}
    whole = facts.unfinished is None and _steps_forecast(facts, plan)
    if whole and (hours := plan["hours"].get("train")) is not None:
        found["train_seconds"] = Grade(3600 * hours, facts.stages["train"].manifest["seconds"])
    others = [name for name, hours in plan["hours"].items() if name != "train" and hours and name in facts.stages]
    if others and facts.unfinished is None:
        expected = sum(plan["hours"][name] or 0.0 for name in others)
        found["other_seconds"] = Grade(3600 * expected, sum(facts.stages[name].manifest["seconds"] for name in others))
    found["tokens_per_second"] = Grade(plan["tokens_per_second"], train["tokens_per_second"])
    if memory := _memory(train, facts.metrics):
        found["memory_bytes"] = Grade(plan["memory_bytes"], memory)
    # Compares what the stages leave on disk at the end: peak usage during the run is not recorded.
    left = plan["disk_left"]
    stages = [name for name, size in left.items() if size is not None and name in facts.stages]
    if stages and whole:
        expected = sum(left[name] or 0.0 for name in stages)
        found["disk_bytes"] = Grade(expected, sum(_disk(facts.stages[name]) for name in stages))
    return found


def _steps_forecast(facts: Facts, plan: Plan) -> bool:
    """Whether a finished training had the steps that were forecast, as far as these were known and not estimated."""
    grown = [extension["phase"] for extension in facts.counts("train")["extensions"]]
    for index, (forecast, (phase, steps, end)) in enumerate(zip(plan["phases"], facts.phases, strict=False)):
        # Before the examples are counted, the steps of a length in tokens or epochs are an estimate.
        estimated = (phase.get("tokens") or phase.get("epochs")) and index not in grown and end == steps
        if forecast["steps"] not in (None, end) and not phase.get("hours") and not estimated:
            return False
    return True


def forecast(facts: Facts) -> Content:
    """The forecast section: a row for each number, and how the forecast was made."""
    plan = facts.forecast
    assert plan is not None
    machine = plan["machine"]
    ranks = f", {machine['ranks']:,} ranks" if machine["ranks"] > 1 else ""
    how = plan["calibrated"] or "from a table of devices, without a measurement"
    about = [p(f"Made before training began, for {machine['title']}{ranks}; times {how}.")]
    if facts.unfinished is None and not _steps_forecast(facts, plan):
        about.append(p("Training had other steps than forecast, so neither its time nor the disk is compared."))
    return about, table(("what", "forecast", "measured", "error"), _rows(grades(facts)))


def _rows(found: Mapping[str, Grade]) -> Iterator[tuple[Content, ...]]:
    named = {
        "train_seconds": ("training", duration),
        "other_seconds": ("other stages", duration),
        "tokens_per_second": ("real tokens a second", short_count),
        "memory_bytes": ("memory of a rank, bytes", short_count),
        "disk_bytes": ("disk in the end, bytes", short_count),
    }
    for key, grade in found.items():
        name, form = named[key]
        off = "–" if grade.error is None else f"{grade.error:+.0%}".replace("%", "\u00a0%")
        yield b(name), form(grade.expected), form(grade.actual), off


def _memory(train: Mapping[str, Any], rows: tuple[Mapping[str, Any], ...]) -> float:
    """Peak memory of rank 0 in bytes; 0 if unknown."""
    # For a GPU the metrics rows have it; the manifest's number is the memory of the process.
    measured = max((float(row["memory_bytes"]) for row in rows if "memory_bytes" in row), default=0.0)
    return measured if train["device"] != "cpu" else max(measured, float(train["peak_memory_bytes"] or 0))


def _disk(artifact: Artifact) -> float:
    """Bytes in a stage's folder; for training including its checkpoints, which are separate artifacts."""
    size = float(artifact.manifest["disk"]["bytes"])
    for path in artifact.path.glob(f"checkpoints/step-*/{MANIFEST}"):
        size += float(read_manifest(path.parent, "checkpoint")["disk"]["bytes"])
    return size
