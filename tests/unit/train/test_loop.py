"""The loop: which key a step drops with, and which rate it has after a step that was dropped."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from bertwright.core.artifact import Artifact
from bertwright.train import loop
from bertwright.train.step import StepResult

Train = Callable[..., Artifact]
PHASE = {"length": 16, "batch": 8, "learning_rate": 1e-2, "steps": 8, "warmup": 0.0}


def test_every_step_of_every_phase_drops_by_a_key_of_its_own(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[int] = []
    real = loop.train_step

    def noting(*arguments: Any, **settings: Any) -> StepResult:
        keys.append(settings["dropout_key"])
        return real(*arguments, **settings)

    monkeypatch.setattr(loop, "train_step", noting)
    train("first", phases=[PHASE, PHASE])
    again = list(keys)
    train("second", phases=[PHASE, PHASE])
    assert len(set(again)) == 16 and keys == again * 2


def test_the_schedule_follows_applied_updates(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """The third step's gradient is made infinite: it is dropped, and the fourth has the rate that the third had."""
    real, taken = loop.train_step, 0

    def poisoned(model: Any, optimizer: Any, batches: Any, *arguments: Any, **settings: Any) -> StepResult:
        nonlocal taken
        taken += 1
        if taken == 3:
            batches = [replace(b, weights=torch.full_like(b.weights, torch.inf)) for b in batches]
        return real(model, optimizer, batches, *arguments, **settings)

    monkeypatch.setattr(loop, "train_step", poisoned)
    done = train(phases=[PHASE], log_every=1)
    rows = [json.loads(line) for line in done.file("metrics.jsonl").read_text().splitlines()]
    rates = [row["learning_rate"] for row in rows]
    assert rates == pytest.approx([1e-2 * (1 - step / 8) for step in (0, 1, 2, 2, 3, 4, 5, 6)])
    assert [row["optimizer_step"] for row in rows] == [1, 2, 2, 3, 4, 5, 6, 7]
    assert [row["skipped"] for row in rows] == [0, 0, 1, 0, 0, 0, 0, 0]
    assert rows[-1]["step"] == 8
