"""A request to stop that arrives during held-out scoring: training saves at once, and scores when it continues."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.train.conftest import PHASES
from tests.unit.train.test_run import Notes, metric_lines, same, weights

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import Interrupted
from bertwright.train.state import State, state_of

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]


class Stops(Notes):
    """A log that raises a signal when scoring begins for the `scoring`-th time."""

    def __init__(self, scoring: int) -> None:
        super().__init__()
        self._left = scoring

    def progress(self, stage: str, done: float, total: float, unit: str) -> None:
        if stage == "scoring" and done == 0:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGTERM)


def rows(trained: Artifact) -> list[dict[str, Any]]:
    """The rows, without where checkpoints were saved."""
    return [{key: value for key, value in row.items() if key != "saved"} for row in metric_lines(trained.path)]


def states(trained: Artifact) -> dict[str, State]:
    """The states of all checkpoints, by the name of their folder."""
    folders = (trained.path / "checkpoints").glob("step-*")
    return {folder.name: state_of(open_artifact(folder, "checkpoint")) for folder in folders}


@pytest.mark.parametrize(
    ("scoring", "step"),
    [(1, 6), (2, 12), (3, 18)],
    ids=["between checkpoints", "at the end of a phase", "at the end of training"],
)
def test_it_saves_at_once_and_ends_as_if_it_had_not_been_stopped(train: Train, scoring: int, step: int) -> None:
    undisturbed = train("undisturbed")
    with pytest.raises(Interrupted, match=f"stopped by a signal after step {step - 12 * (step > 12)} of .* is saved"):
        train("disturbed", log=Stops(scoring))
    folder = undisturbed.path.with_name("disturbed") / "checkpoints" / f"step-{step:09d}"
    saved = state_of(open_artifact(folder, "checkpoint"))
    assert saved.unscored and not saved.heldout
    # Stopped again before it has scored, it loses nothing either.
    with pytest.raises(Interrupted, match="everything is saved"):
        train("disturbed", log=Stops(1))
    continued = train("disturbed")
    assert same(weights(continued), weights(undisturbed))
    assert rows(continued) == rows(undisturbed)
    ours, theirs = states(continued), states(undisturbed)
    assert not any(state.unscored for state in ours.values())
    assert {name: ours[name].heldout for name in theirs} == {name: state.heldout for name, state in theirs.items()}
    assert {name for name, state in ours.items() if state.due} == theirs.keys()


def test_a_target_that_the_late_scores_reach_ends_the_phase(train: Train) -> None:
    phases = [{**PHASES[0], "target_accuracy": 0.001}, PHASES[1]]
    undisturbed = train("undisturbed", phases=phases)
    with pytest.raises(Interrupted):
        train("disturbed", phases=phases, log=Stops(1))
    notes = Notes()
    continued = train("disturbed", phases=phases, log=notes)
    assert any("phase 0 ends after step 6 of 12: held-out accuracy" in line for line in notes.lines)
    assert same(weights(continued), weights(undisturbed)) and rows(continued) == rows(undisturbed)
    assert [end.step for end in states(continued)["step-000000012"].ended] == [6]
