"""Sides in turn, in processes that are gone afterwards, and what is said of one that fails."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from bertwright.bench import run as bench_run
from bertwright.bench.run import Setting, bench
from bertwright.bench.workload import Precision, Side, Step, Training
from bertwright.core.errors import DataError

pytestmark = pytest.mark.heavy

SIDES: tuple[Side, ...] = ("bertwright", "trainer")


class Fake:
    """Sides that take as long as `took` says, and record what they are asked for."""

    asked: list[tuple[str, str, int]]
    took: dict[tuple[Side, Precision], float]
    closed: list[str]

    @classmethod
    @contextmanager
    def side(cls, side: Side, name: str, training: Training) -> Iterator[Callable[[int], list[Step]]]:
        def steps(number: int) -> list[Step]:
            cls.asked.append((side, training.precision, number))
            seconds = cls.took[side, training.precision]
            return [Step(seconds, 2 * seconds, 0.5 if side == "bertwright" else None)] * number

        yield steps
        cls.closed.append(f"{side} {training.precision}")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[Fake]:
    Fake.asked, Fake.closed = [], []
    Fake.took = {
        ("bertwright", "fp32"): 1.0,
        ("trainer", "fp32"): 3.0,
        ("bertwright", "bf16"): 0.5,
        ("trainer", "bf16"): 2,
    }
    monkeypatch.setattr(bench_run, "_side", Fake.side)
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
    assert fake.closed == ["trainer fp32", "bertwright fp32"]


def test_each_precision_is_compared_with_its_own_peer(fake: type[Fake]) -> None:
    found = bench(["full-128"], SIDES, Setting(("fp32", "bf16"), rounds=1), lambda line: None)
    assert [(each.side, each.precision, each.times_as_fast, each.times_fp32) for each in found] == [
        ("bertwright", "fp32", 1.0, None),
        ("trainer", "fp32", 3.0, None),
        ("bertwright", "bf16", 1.0, 2.0),
        ("trainer", "bf16", 4.0, 1.5),
    ]
    assert [each.floor_ratio for each in found] == [2.0, None, 1.0, None]
    assert [precision for _, precision, _ in fake.asked[-4:]] == ["fp32", "fp32", "bf16", "bf16"], "in the same round"


def test_one_precision_alone_has_no_float32_ratio(fake: type[Fake]) -> None:
    (found,) = bench(["half-512"], SIDES[:1], Setting(("bf16",), rounds=1), lambda line: None)
    assert found.times_fp32 is None and found.workload == "half-512"


def test_a_side_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_run, "WARM_UP", "no number")
    with pytest.raises(DataError, match=r"bertwright in fp32 ended early: ValueError: invalid literal"):
        bench(["full-128"], ["bertwright"], Setting(), lambda line: None)


def test_a_side_trains_with_the_given_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = []

    @contextmanager
    def child(command: list[str], name: str) -> Iterator[Callable[[bytes], bytes]]:
        commands.append((name, command[-2], json.loads(command[-1])))
        yield lambda line: b"[[1.0, 2.0, 0.5]]"

    monkeypatch.setattr(bench_run, "answering_child", child)
    bench(["full-128"], ["trainer"], Setting(("bf16",), Training(threads=3, dropout=0.2)), lambda line: None)
    training = {"precision": "bf16", "threads": 3, "dropout": 0.2, "attention_dropout": 0.0}
    assert commands == [("trainer in bf16", "full-128", training)]
