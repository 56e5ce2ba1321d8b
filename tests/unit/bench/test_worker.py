"""A side as a process sees it: numbers of steps in, lines of JSON out, nothing else on standard output."""

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

import bertwright.bench.bertwright_side
from bertwright.bench.worker import main, take_of
from bertwright.bench.workload import WORKLOADS, Step, Training


def test_each_line_is_answered_despite_library_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []

    def fake(workload: Any, training: Training) -> Any:
        asked.append((workload, training))

        def take(number: int) -> list[Step]:
            print("a library says hello")
            return [Step(1.0, 2.0, 0.5)] * number

        return take

    monkeypatch.setattr(bertwright.bench.bertwright_side, "bertwright_side", fake)
    monkeypatch.setattr(sys, "stdin", io.StringIO("2\n1\n"))
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # restored afterwards
    training = Training("bf16", 3, 0.2, 0.1)
    main("bertwright", "half-512", json.dumps(asdict(training)))
    said = capsys.readouterr()
    assert [json.loads(line) for line in said.out.splitlines()] == [[[1.0, 2.0, 0.5]] * 2, [[1.0, 2.0, 0.5]]]
    assert said.err.count("a library says hello") == 2
    assert asked == [(WORKLOADS["half-512"], training)]


@pytest.mark.parametrize(("side", "tuned"), [("trainer", False), ("trainer-tuned", True)])
def test_a_call_of_train_is_kept_for_each_number_of_steps(
    side: Any, tuned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each begins with a step that does not count, so the warm-up's two steps and a block's five are calls apart."""
    peer = pytest.importorskip("bertwright.bench.trainer_side", reason="the extra 'bench' is not installed")
    begun = []

    def fake(workload: Any, training: Training, grouped: bool, steps: int) -> Iterator[list[Step]]:
        begun.append((grouped, steps))
        while True:
            yield [Step(1.0, 1.0)] * steps

    monkeypatch.setattr(peer, "trainer_side", fake)
    take = take_of(side, "full-128", Training())
    assert [len(take(number)) for number in (2, 5, 5, 2)] == [2, 5, 5, 2]
    assert begun == [(tuned, 2), (tuned, 5)]
