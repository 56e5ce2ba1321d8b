"""The stage `report`: reads manifests, JSON and JSONL of a run folder and writes report.html and summary.json."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact
from bertwright.core.config import Identity
from bertwright.core.files import write_atomic
from bertwright.core.log import SILENT, Log
from bertwright.report.config import VERSION, ReportConfig, sections
from bertwright.report.facts import Facts, read_facts
from bertwright.report.forecast import grades
from bertwright.report.page import page
from bertwright.tasks.section import epochs_of

_UNREADABLE = "backslashreplace"
"""How bytes of a file name that are not UTF-8 are written: `\\udce9` for 0xe9."""
_TIME = re.compile(rb'<time datetime="[^"]*">[^<]*</time>')


def run(config: ReportConfig, folder: Path, artifacts: Mapping[str, Artifact], log: Log = SILENT) -> Path:
    """Write `report.html` and `summary.json` into the run folder and return the page's path.

    `artifacts` are those of the other stages by name, in travel order. Both files depend only on them and on the
    current time; a file that would differ only in the time is left untouched.
    """
    facts = read_facts(folder, artifacts, config.title)
    numbers = summary(facts, config)
    written = [
        _write_page(folder / "report.html", facts, numbers),
        _write(folder / "summary.json", json.dumps(numbers, indent=2, ensure_ascii=False) + "\n"),
    ]
    if any(written):
        log.say("report: report.html and summary.json written")
    return folder / "report.html"


def write_page(config: ReportConfig, folder: Path, artifacts: Mapping[str, Artifact]) -> None:
    """Write only `report.html`, the page of an unfinished training."""
    facts = read_facts(folder, artifacts, config.title)
    # No summary.json: a program that finds one may rely on it (decision 0008).
    _write_page(folder / "report.html", facts, summary(facts, config))


def _write_page(path: Path, facts: Facts, numbers: Mapping[str, Any]) -> bool:
    data = page(facts, numbers, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")).encode(errors=_UNREADABLE)
    # A new time alone does not rewrite the file: running the report twice must change nothing.
    if path.is_file() and _TIME.sub(b"", path.read_bytes(), count=1) == _TIME.sub(b"", data, count=1):
        return False
    write_atomic(path, data)
    return True


def _write(path: Path, text: str) -> bool:
    data = text.encode(errors=_UNREADABLE)
    if path.is_file() and path.read_bytes() == data:
        return False
    write_atomic(path, data)
    return True


def summary(facts: Facts, config: ReportConfig) -> dict[str, Any]:
    """The content of summary.json (`report.shapes.Summary`)."""
    train = facts.counts("train")
    stages = {
        name: {
            "version": artifact.manifest["version"],
            "fingerprint": artifact.fingerprint,
            "seconds": artifact.manifest["seconds"],
        }
        for name, artifact in facts.stages.items()
    }
    inputs = {name: artifact.fingerprint for name, artifact in facts.stages.items()}
    outside = [row["outside_band"] for row in facts.metrics if "outside_band" in row]
    # The page is not an artifact, so its fingerprint is computed here.
    report = Identity("report", VERSION, sections(config), inputs)
    return {
        "title": facts.title or facts.name,
        "model": facts.model_title,
        "verdict": facts.verdict,
        **({"unfinished": dict(facts.unfinished)} if facts.unfinished else {}),
        **facts.section.summary(facts.scores),
        **({"epochs": dict(epochs)} if (epochs := epochs_of(facts.metrics, facts.section.official)) else {}),
        "parameters": train["parameters"],
        "steps": train["steps"],
        "tokens_seen": train["tokens_seen"],
        "tokens_per_second": train["tokens_per_second"],
        "train_seconds": (seconds := train["train_seconds"]),
        "sequences_per_second": round(train["sequences_seen"] / max(seconds, 1e-9), 2),
        "tflops_done": train["tflops_done"],
        "hours": train["hours"],
        "seconds": round(sum(stage["seconds"] for stage in stages.values()), 3),
        **({"forecast": graded} if (graded := _forecast_grades(facts)) else {}),
        **({"outside_band": outside} if outside else {}),
        **({"averaging": dict(train["averaging"])} if "averaging" in train else {}),
        "recipe_sha256": hashlib.sha256(facts.recipe.encode()).hexdigest(),
        "stages": {**stages, "report": {"version": VERSION, "fingerprint": report.fingerprint}},
    }


def _forecast_grades(facts: Facts) -> dict[str, dict[str, float | None]]:
    return {
        name: {
            "expected": round(grade.expected, 3),
            "actual": grade.actual,
            "error": None if grade.error is None else round(grade.error, 4),
        }
        for name, grade in grades(facts).items()
    }
