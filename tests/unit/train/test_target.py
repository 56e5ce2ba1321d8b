"""A phase that ends at a held-out accuracy, with the score that reaches it; the next one trains all of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.train.conftest import PHASES
from tests.unit.train.test_run import Notes, metric_lines

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, Interrupted

Train = Callable[..., Artifact]


def phases(first: float | None, second: float | None = None) -> list[dict[str, Any]]:
    return [{**phase, "target_accuracy": target} for phase, target in zip(PHASES, (first, second), strict=True)]


def test_a_phase_ends_at_the_first_score_that_reaches_its_target(train: Train, tmp_path: Path) -> None:
    notes = Notes()
    done = train(phases=phases(0.001), log=notes)
    rows = metric_lines(done.path)
    assert [row["step"] for row in rows if row["phase"] == 0][-1] == 6, "the first score, of 12 steps"
    assert [row["step"] for row in rows if row["phase"] == 1][-1] == 6, "all of the second, whatever the first scored"
    assert done.counts["steps"] == 12
    assert any("phase 0 ends after step 6 of 12: held-out accuracy of masked tokens reached" in s for s in notes.lines)


def test_a_target_that_is_not_reached_is_said_at_the_end(train: Train) -> None:
    notes = Notes()
    done = train(phases=phases(None, 0.999), evaluate_every=3, log=notes)
    assert done.counts["steps"] == 18
    said = [sentence for sentence in notes.lines if "target" in sentence]
    assert len(said) == 1 and "phase 1 ends after step 6 of 6" in said[0] and "did not reach its target" in said[0]


def test_its_rates_are_those_of_the_whole_length(train: Train) -> None:
    whole, ended = train("whole"), train("ended", phases=phases(0.001))
    first = [[row["learning_rate"] for row in metric_lines(done.path) if row["phase"] == 0] for done in (whole, ended)]
    assert first[1] == first[0][: len(first[1])]


def test_a_stop_after_the_end_goes_on_with_the_next_phase(train: Train, tmp_path: Path) -> None:
    """Stopped while the phase that follows trains: what stands there is the same as without a stop."""
    whole = train("whole", phases=phases(0.001))

    class Stops(Notes):
        def record(self, row: dict[str, Any]) -> None:
            super().record(row)
            if row["phase"] == 0 and row["step"] == 6:
                raise Interrupted("stopped")

    with pytest.raises(Interrupted):
        train("stopped", phases=phases(0.001), log=Stops())
    again = train("stopped", phases=phases(0.001))
    again = train("stopped", phases=phases(0.001))
    assert again.counts["weights"] == whole.counts["weights"]


def test_a_higher_target_goes_on_with_the_phase(train: Train, tmp_path: Path) -> None:
    """While the phase is the newest that was trained; an ended one stays as it is."""

    class Stops(Notes):
        def record(self, row: dict[str, Any]) -> None:
            super().record(row)
            if row["phase"] == 1:
                raise Interrupted("stopped")

    with pytest.raises(Interrupted):
        train("raised", phases=phases(0.001), log=Stops())
    done = train("raised", phases=phases(None))
    assert done.counts["steps"] == 18


def test_an_ended_phase_keeps_its_target_and_end(train: Train) -> None:
    done = train(phases=phases(0.001))
    assert done.counts["phase_ends"] == [6, 6] and done.counts["phase_steps"] == [12, 6]
    with pytest.raises(
        ArtifactError, match=r"phases\.0 has ended after step 6 with target_accuracy 0\.001, but the recipe"
    ):
        train(phases=phases(0.9))
    first, second = phases(0.001)
    with pytest.raises(ArtifactError, match=r"has ended after step 6 and cannot end after 5 now\. Set .*end_after=6,"):
        train(phases=[{**first, "end_after": 5}, second])
    again = train(phases=[{**first, "end_after": 6}, second])
    assert again.counts["weights"] == done.counts["weights"] and again.counts["phase_ends"] == [6, 6]
