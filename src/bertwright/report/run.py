"""The stage `report`: manifests, JSON and JSONL of a run folder in, report.html and summary.json out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bertwright.core.artifact import Artifact
from bertwright.core.files import write_atomic
from bertwright.core.log import SILENT, Log
from bertwright.report.config import ReportConfig
from bertwright.report.facts import read_facts
from bertwright.report.page import page
from bertwright.report.summary import summary


def run(config: ReportConfig, folder: Path, artifacts: Mapping[str, Artifact], log: Log = SILENT) -> Path:
    """Write `report.html` and `summary.json` into the run folder and return the page's path.

    `artifacts` are those of the other stages by name, in travel order. Both files are functions of them, so files that
    already say the same are not touched.
    """
    facts = read_facts(folder, artifacts, config.title)
    numbers = summary(facts, config)
    written = [
        _write(folder / "report.html", page(facts, numbers)),
        _write(folder / "summary.json", json.dumps(numbers, indent=2, ensure_ascii=False) + "\n"),
    ]
    if any(written):
        log.say("report: report.html and summary.json written")
    return folder / "report.html"


def _write(path: Path, text: str) -> bool:
    data = text.encode()
    if path.is_file() and path.read_bytes() == data:
        return False
    write_atomic(path, data)
    return True
