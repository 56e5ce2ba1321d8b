"""Sides in turn, in processes that are gone afterwards, and what is said of one that fails."""

import subprocess
import sys
from typing import Any

import pytest
from tests.rows import each_row

from bertwright.bench import run as bench_run
from bertwright.bench.run import Setting, _Running, bench
from bertwright.bench.training import Precision, Side, Step, Training
from bertwright.core.errors import DataError

pytestmark = pytest.mark.heavy

SIDES: tuple[Side, ...] = ("bertwright", "trainer")


class Fake:
    """A side that takes as long as its name says, and notes when it was asked."""

    asked: list[tuple[str, str, int]]
    took: dict[tuple[Side, Precision], float]
    left: list[str]

    def __init__(self, side: Side, name: str, training: Training) -> None:
        self.side, self.training = side, training

    def steps(self, number: int) -> list[Step]:
        self.asked.append((self.side, self.training.precision, number))
        seconds = self.took[self.side, self.training.precision]
        return [Step(seconds, 2 * seconds, 0.5 if self.side == "bertwright" else None)] * number

    def __enter__(self) -> "Fake":
        return self

    def __exit__(self, *_: object) -> None:
        self.left.append(f"{self.side} {self.training.precision}")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[Fake]:
    Fake.asked, Fake.left = [], []
    Fake.took = {
        ("bertwright", "fp32"): 1.0,
        ("trainer", "fp32"): 3.0,
        ("bertwright", "bf16"): 0.5,
        ("trainer", "bf16"): 2,
    }
    monkeypatch.setattr(bench_run, "_Running", Fake)
    return Fake


def test_sides_train_in_turn_after_each_has_warmed_up(fake: type[Fake]) -> None:
    said: list[str] = []
    bench(["full-128"], SIDES, Setting(rounds=2, steps=4), said.append)
    assert (
        fake.asked
        == [("bertwright", "fp32", 2), ("trainer", "fp32", 2)]
        + [
            ("bertwright", "fp32", 4),
            ("trainer", "fp32", 4),
        ]
        * 2
    )
    assert said == [
        "full-128: bertwright in fp32 is warming up", "full-128: trainer in fp32 is warming up",
        "full-128: round 1 of 2", "full-128: round 2 of 2",
    ]  # fmt: skip
    assert fake.left == ["trainer fp32", "bertwright fp32"]


def test_both_precisions_stand_in_one_run_each_beside_its_own_peer(fake: type[Fake]) -> None:
    found = bench(["full-128"], SIDES, Setting(("fp32", "bf16"), rounds=1), lambda line: None)
    assert [(each.side, each.precision, each.times_as_fast, each.times_fp32) for each in found] == [
        ("bertwright", "fp32", 1.0, None),
        ("trainer", "fp32", 3.0, None),
        ("bertwright", "bf16", 1.0, 2.0),
        ("trainer", "bf16", 4.0, 1.5),
    ]
    assert [each.floor_ratio for each in found] == [2.0, None, 1.0, None]
    assert [precision for _, precision, _ in fake.asked[-4:]] == ["fp32", "fp32", "bf16", "bf16"], "in the same round"


def test_one_precision_alone_is_beside_no_float32(fake: type[Fake]) -> None:
    (found,) = bench(["half-512"], SIDES[:1], Setting(("bf16",), rounds=1), lambda line: None)
    assert found.times_fp32 is None and found.workload == "half-512"


def test_every_side_is_told_how_to_train() -> None:
    setting = Setting(("bf16",), threads=3, dropout=0.2, attention_dropout=0.1)
    assert setting.training("bf16") == Training("bf16", 3, 0.2, 0.1)


def test_a_side_that_ends_is_named_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_run, "WARM_UP", "no number")
    with pytest.raises(DataError, match=r"bertwright in fp32 ended while it was measured: ValueError: invalid literal"):
        bench(["full-128"], ["bertwright"], Setting(), lambda line: None)


def running(monkeypatch: pytest.MonkeyPatch, code: str) -> _Running:
    """A side whose process does this instead."""
    real = subprocess.Popen

    def start(command: list[str], **other: Any) -> Any:
        return real([sys.executable, "-c", code], **other)

    monkeypatch.setattr(bench_run.subprocess, "Popen", start)
    return _Running("trainer", "full-128", Training())


@each_row(
    ("code", "said"),
    [
        ("raise SystemExit(3)", "trainer in fp32 ended while it was measured: no error message"),
        ("import sys; sys.exit('first\\nno memory')", "ended while it was measured: no memory"),
        ("input(); raise ValueError('bad')", "ended while it was measured: ValueError: bad"),
    ],
)
def test_whenever_it_ends_its_last_line_is_said(code: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(monkeypatch, code) as side, pytest.raises(DataError, match=said):
        side.steps(1)


def test_a_process_is_gone_when_its_block_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = "[[1.0, 2.0, null], [1.5, 2.5, 0.5]]"
    code = f"import time\nprint('{answer}' if input() == '2' else '', flush=True)\ntime.sleep(600)"
    with running(monkeypatch, code) as side:
        assert side.steps(2) == [Step(1.0, 2.0, None), Step(1.5, 2.5, 0.5)]
        assert side.process.poll() is None
    assert side.process.poll() is not None
    assert all(pipe and pipe.closed for pipe in (side.process.stdin, side.process.stdout, side.errors))
