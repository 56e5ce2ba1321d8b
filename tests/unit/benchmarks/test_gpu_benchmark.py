"""The GPU benchmark, at a size where a processor can: both sides compute the same, are timed, and stand in a table."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from gpu import Measured, main, table


def test_a_case_is_measured_beside_the_peer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--device", "cpu", "--tiny", "--steps", "1", "--json", str(tmp_path / "a.json"), "tiny-32-half-packed"])
    assert "same weights, same batch: loss" in capsys.readouterr().out
    found = json.loads((tmp_path / "a.json").read_text())
    assert [row["side"] for row in found["rows"]] == ["bertwright", "transformers"]
    assert all(row["tokens"] > row["sequences"] > 0 and row["teraflops"] > 0 for row in found["rows"])


def test_the_table_says_how_many_times_the_peer() -> None:
    rows = [
        Measured("a", "bertwright", 20, 2000, 300.0, 0.4, 30.5),
        Measured("a", "transformers", 10, 1000, 150, 0.2, 60),
    ]
    assert table(rows).splitlines()[2:] == [
        "| a | bertwright | 20 | 2,000 | 300.0 | 40% | 30.5 | 2.00 |",
        "| a | transformers | 10 | 1,000 | 150.0 | 20% | 60.0 | 1.00 |",
    ]


def test_without_a_gpu_it_says_so() -> None:
    with pytest.raises(SystemExit, match="torch sees no GPU here"):
        main([])
