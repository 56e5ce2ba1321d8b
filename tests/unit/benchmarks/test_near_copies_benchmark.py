"""The benchmark of the search for near-copies runs, and its documents are what it says they are."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import near_copies

pytestmark = pytest.mark.heavy


def test_the_planted_copies_are_found_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = near_copies.write_parts(tmp_path, 6000)
    assert len(parts) == 3
    near_copies.search(tmp_path)
    dropped, seconds, megabytes = map(float, capsys.readouterr().out.split())
    assert dropped == 2 * near_copies.COPIED
    assert seconds > 0 and megabytes > 10


def test_the_table_shows_the_growth(capsys: pytest.CaptureFixture[str]) -> None:
    near_copies.main("0.002", "0.004")
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| 0.002 | 0 | ") and lines[3].startswith("| 0.004 | 100 | ")
    assert "for 2.00 times as many" in lines[3]
