"""A run that leaves the loss range its recipe expects says so in the log, on the page at that step, and at its end."""

import json
from pathlib import Path

from tests.pipeline.conftest import Call


def test_it_is_said_in_the_log_on_the_page_and_at_the_end(small_recipe: Path, tmp_path: Path, call: Call) -> None:
    band = "train.expected=[{step = 5, low = 0.1, high = 0.2}]"
    done = call("run", small_recipe, band, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    text = "is above the 0.1 to 0.2 that the recipe expects at step 5 (train.expected)"
    lines = [line for line in done.err.splitlines() if text in line]
    assert len(lines) == 2 and lines[0].startswith("train: step 5: ") and lines[1].startswith("warning: step 5: ")
    (left,) = json.loads((tmp_path / "run" / "summary.json").read_text())["outside_band"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert left.startswith("step 5: ") and f"S{left[1:]}" in page
