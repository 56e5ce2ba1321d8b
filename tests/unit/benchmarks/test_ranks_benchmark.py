"""The benchmark of a second core: which cores it binds to, and its table, which docs/scaling.md has a place for."""

import sys
from pathlib import Path

import pytest

from bertwright import Recipe

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import ranks as program

DOCUMENT = Path(__file__).parents[3] / "docs" / "scaling.md"


def test_only_one_hardware_thread_of_each_core_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program.os, "sched_getaffinity", lambda _: {0, 1, 3, 4, 5})
    monkeypatch.setattr(program, "_core", lambda cpu: cpu % 4)
    cores = program.physical_cores()
    assert cores == [0, 1, 3], "4 and 5 are second threads"
    assert [[group.processors for group in program.groups(setting, cores)] for setting in program.SETTINGS] == [
        [(0,)],
        [(0,), (1,)],
        [(0, 1)],
    ]


def test_one_core_is_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "physical_cores", lambda: [0])
    with pytest.raises(SystemExit, match="two physical cores are needed, but this process may use only 1"):
        program.main("--rounds", "1")


def test_the_first_step_and_the_second_phase_are_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"phase": 0, "seconds": 9.0}, {"phase": 0, "seconds": 10.0}, {"phase": 0, "seconds": 12.0}]
    monkeypatch.setattr(program, "read_rows", lambda _: [*rows, {"phase": 1, "seconds": 20.0}])
    assert program.step_seconds(tmp_path / "metrics.jsonl") == [1.0, 2.0]


def test_the_table_divides_by_the_cores_and_the_document_has_its_head() -> None:
    times = dict(zip(program.SETTINGS, ([3.0, 2.0, 2.0], [1.25], [1.0]), strict=True))
    head, _, one, two, threads = program.table(times, Recipe.load("smoke", program.KEYS)).splitlines()
    assert head in DOCUMENT.read_text(encoding="utf-8")
    assert one == "| 1 rank on 1 core | 2.000 (2.000 to 3.000) | 100.0% | 100.0% |"
    assert two.startswith("| 2 ranks on 1 core each | 1.250 (1.250 to 1.250) | 80.0% | 9")
    assert threads.startswith("| 1 process with 2 threads on 2 cores | 1.000 (1.000 to 1.000) | 100.0% | ")
