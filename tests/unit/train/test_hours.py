"""Phases with a budget of time: the rate follows it, the phase ends with it, and a stop in between loses none of it."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.clock import Clock, replace_clock
from tests.conftest import Prepared
from tests.rows import each_row
from tests.unit.train.conftest import PHASES
from tests.unit.train.test_run import Notes, metric_lines

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, Interrupted
from bertwright.train.config import TrainConfig
from bertwright.train.settings.phase_config import PhaseConfig
from bertwright.train.settings.phases import Phase, resolve_phases

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]
SECONDS = 300
PHASE = {**PHASES[0], "steps": 5000, "hours": SECONDS / 3600, "warmup": 0.2}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_clock(monkeypatch, Clock())


def phase_of(prepared: Prepared, **settings: Any) -> Phase:
    config = TrainConfig.model_validate({"phases": [PHASE | settings]})
    return resolve_phases(config, prepared.examples, prepared.vocab)[0]


def states(done: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted(done.glob("checkpoints/*/state.json"))]


def expected(seconds: float) -> float:
    """Up to 1e-2 at a fifth of the time, and straight down to its end."""
    share = seconds / SECONDS
    return 1e-2 * (share / 0.2 if share < 0.2 else (1 - share) / 0.8)


def test_the_rate_is_that_of_the_share_of_the_time(prepared: Prepared) -> None:
    phase = phase_of(prepared)
    for seconds in (0, 1, 30, 59, 60, 61, 150, 299, 299.9995):
        assert phase.rate(17, seconds) == pytest.approx(expected(seconds), abs=1e-6), seconds
        assert not phase.over(17, seconds)
    assert phase.over(17, SECONDS) and phase.over(5000, 0)


@each_row("schedule", ["cosine", "wsd", "constant", "poly", "poly_nvidia"])
def test_any_schedule_follows_it(prepared: Prepared, schedule: str) -> None:
    timed, counted = phase_of(prepared, schedule=schedule), phase_of(prepared, schedule=schedule, hours=None)
    for share in (0.1, 0.5, 0.95):
        assert timed.rate(0, share * SECONDS) == pytest.approx(counted.rate(round(share * 5000), 0), rel=5e-3)


@pytest.mark.usefixtures("clock")
def test_a_phase_ends_when_its_time_is_used_up(train: Train) -> None:
    notes = Notes()
    done = train(phases=[PHASE, PHASES[1]], log=notes, keep_checkpoints=1000, log_every=1)
    first = [row for row in notes.rows if row["phase"] == 0]
    assert 20 < len(first) < 200 and [row["step"] for row in notes.rows if row["phase"] == 1][-1] == 6
    before = [0.0, *(row["seconds"] for row in first[:-1])]
    assert first[-1]["seconds"] >= SECONDS > before[-1]
    for row, seconds in zip(first, before, strict=True):
        assert row["learning_rate"] == pytest.approx(expected(seconds), abs=1e-5)
    ends = [state for state in states(done.path) if state["phase_end"]]
    assert [(end["phase"], end["data_step"]) for end in ends] == [(0, len(first)), (1, 6)]
    assert ends[0]["heldout"] and ends[1]["phase_seconds"] < ends[0]["phase_seconds"]
    assert done.counts["sessions"][0]["hours"] == [PHASE["hours"], None]


@pytest.mark.usefixtures("clock")
def test_every_tenth_of_the_time_is_scored_and_saved(train: Train) -> None:
    settings = {"evaluate_every": 10_000, "checkpoint_every": 10_000, "keep_checkpoints": 1000}
    done = train(phases=[PHASE], **settings)
    tenths = [int(state["phase_seconds"] / SECONDS * 10) for state in states(done.path)]
    assert tenths == list(range(1, 11)) and all(state["heldout"] for state in states(done.path))


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("row", [3, 20])
def test_the_rate_resumes_where_it_stopped(train: Train, row: int) -> None:
    settings = {"phases": [{**PHASE, "warmup": 0.0}], "log_every": 1, "keep_checkpoints": 1000}
    with pytest.raises(Interrupted):
        train("run", log=Notes(kill_at_row=row), **settings)
    done = train("run", **settings)
    rows = [json.loads(line) for line in (done.path / "metrics.jsonl").read_text().splitlines()]
    assert [r["step"] for r in rows] == list(range(1, len(rows) + 1))
    falls = [a["learning_rate"] - b["learning_rate"] for a, b in pairwise(rows)]
    # A step takes three looks at the clock, the first one of a start may take some more.
    assert all(0 < fall < 1e-2 * 12 / SECONDS for fall in falls)
    assert rows[-1]["seconds"] == pytest.approx(SECONDS, abs=12)


def test_a_finished_training_is_not_gone_on_with(train: Train) -> None:
    """By the machine's own clock: 0.4 seconds."""
    phases = [{**PHASE, "hours": 0.4 / 3600}]
    done = train(phases=phases)
    assert 0 < done.counts["steps"] < 5000 and done.counts["train_seconds"] >= 0.4
    rows = metric_lines(done.path)
    assert train(phases=phases).fingerprint == done.fingerprint and metric_lines(done.path) == rows


def test_another_budget_is_refused_once_there_are_checkpoints(train: Train) -> None:
    train(phases=[{**PHASE, "hours": 0.2 / 3600}])
    with pytest.raises(ArtifactError, match=r"train.phases.0.hours: .*Restore these settings"):
        train(phases=[{**PHASE, "hours": 0.3 / 3600}])


@each_row(
    ("wrong", "said"),
    [
        ({"hours": 0}, "greater than 0"),
        ({"warmup": 10}, "warmup 10 is a number of steps, but with hours the learning rate follows time: give a share"),
        ({"steps": None}, "give exactly one of steps, epochs, samples, tokens; given: none"),
    ],
)
def test_wrong_values_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        PhaseConfig.model_validate(PHASE | wrong)
