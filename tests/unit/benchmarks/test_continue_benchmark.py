"""The comparison of a continued training with scratch and run_mlm, at a size of seconds."""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from tests.unit.init.test_continued import ENGLISH, network, text, words_of

from bertwright.cli import main

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "continue.py"


def script() -> Any:
    spec = spec_from_file_location("continue_benchmark", SCRIPT)
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_has_each_side_and_the_change_against_the_start() -> None:
    rows = {
        "start": {"seconds": 0.0, "own": 4.0, "general": 2.0},
        "drafted": {"seconds": 61.7, "own": 3.0, "general": 2.1},
    }
    head, _, start, drafted = script().table(rows).splitlines()
    assert head == "| network | processor seconds | own text (nats) | general text (nats) |"
    assert start == "| start | 0 | 4.000 (+0.0 %) | 2.000 (+0.0 %) |"
    assert drafted == "| drafted | 62 | 3.000 (-25.0 %) | 2.100 (+5.0 %) |"


@pytest.mark.heavy
def test_all_sides_are_trained_and_scored_on_the_same_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only what is timed is a process of its own: the trainings."""
    pytest.importorskip("accelerate", reason="transformers' Trainer needs accelerate")
    benchmark = script()
    started = benchmark.bertwright

    def bertwright(*words: str) -> None:
        if words[0] == "train":
            started(*words)
            return
        monkeypatch.setattr(sys, "argv", ["bertwright", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code

    monkeypatch.setattr(benchmark, "bertwright", bertwright)
    start = network(tmp_path / "start", words_of(ENGLISH))
    for name, sentences in (("own", ENGLISH[:2]), ("general", ENGLISH[2:])):
        (tmp_path / f"{name}.txt").write_text(text(sentences, 80), encoding="utf-8")
    texts = ["--source", str(tmp_path / "own.txt"), "--general", str(tmp_path / "general.txt")]
    few = ["train.phases.0.epochs=1", "corpus.workers=1", "examples.workers=1"]
    words = [str(tmp_path / "out"), "--from", str(start), *texts, "--threads", "1", *few]
    for _ in range(2):  # the second time everything is there
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *words])
        benchmark.main()
    assert "corpus: reading" not in capsys.readouterr().err
    rows = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert list(rows) == ["start", "drafted", "scratch", "run_mlm"]
    assert all(row["own"] > 0 and row["general"] > 0 for row in rows.values())
    # `evaluate` scored the same networks on the same tokens.
    (own, general) = json.loads((tmp_path / "out/drafted/evaluate/scores.json").read_text(encoding="utf-8"))["by_text"]
    for text_row in (own, general):
        name = text_row["text"]
        assert rows["drafted"][name] == pytest.approx(text_row["loss"], rel=1e-5)
        assert rows["start"][name] == pytest.approx(text_row["before"], rel=1e-5)
