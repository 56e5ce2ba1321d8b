"""Where training stands: advanced step by step, and refused where it cannot have been."""

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.artifact import Artifact, open_artifact, seal
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError
from bertwright.core.files import make_folder, write_json
from bertwright.train.state import PhaseEnd, State, state_of

START = {
    "from_step": 0,
    "ranks": 1,
    "threads": 2,
    "device": "cpu",
    "machine": "gép",
    "torch": "2.13.0",
    "engine": "single",
}
STOOD = State(
    phase=1, data_step=4, optimizer_step=3, total_steps=14, sequences_seen=112, tokens_seen=900, seconds=2.5,
    phase_steps=(10, 8), phase_ends=(10, 8), heldout={"mlm_loss": 2.0},
    ended=(PhaseEnd(phase=0, step=7, early=True, target_accuracy=0.5),),
    extensions=({"phase": 0, "step": 5, "from": 8, "to": 10},), sessions=(START,),
)  # fmt: skip


def written(folder: Path, values: Any) -> Artifact:
    """A checkpoint whose seal is right, whatever its state says."""
    make_folder(folder)
    write_json(folder / "state.json", values)
    seal(folder, Identity("checkpoint", 1, {}, {}), {}, 0.0)
    return open_artifact(folder, "checkpoint")


def test_what_was_written_is_what_is_read(tmp_path: Path) -> None:
    assert state_of(written(tmp_path / "step-000000014", asdict(STOOD))) == STOOD
    assert state_of(written(tmp_path / "step-000000000", asdict(State()))) == State()


@each_row("name", [field.name for field in fields(State)])
def test_a_state_that_lacks_anything_does_not_fall_back_to_zero(tmp_path: Path, name: str) -> None:
    values = {key: value for key, value in asdict(STOOD).items() if key != name}
    with pytest.raises(ArtifactError, match=f"it lacks {name}. Restore it, or take an older checkpoint"):
        state_of(written(tmp_path / "step-000000014", values))


def test_a_start_of_which_nothing_is_said_is_refused(tmp_path: Path) -> None:
    values = asdict(STOOD) | {"sessions": [{key: value for key, value in START.items() if key != "device"}]}
    with pytest.raises(ArtifactError, match=r"sessions\.0\.device: Field required\. Restore it, or take an older"):
        state_of(written(tmp_path / "step-000000014", values))


def test_ends_are_recorded_or_else_planned() -> None:
    assert STOOD.ends == (7, 8)
    assert replace(STOOD, phase_end=True).ends == (7, 4), "this step was the last"
    handed = replace(State(phase_steps=(10, 8, 3), phase_ends=(10, 8, 3)), data_step=6).next_phase(1, True, 0.25)
    assert handed.ended == (PhaseEnd(0, 6, True, 0.25),) and handed.ends == (6, 8, 3)


def test_operations_may_exceed_other_numbers(tmp_path: Path) -> None:
    large = replace(STOOD, flops=4.5e23)
    assert state_of(written(tmp_path / "step-000000014", asdict(large))).flops == 4.5e23


@each_row(
    "impossible",
    [
        {"data_step": -1},
        {"total_steps": 2**62},
        {"optimizer_step": 5},  # more updates than batches
        {"data_step": 9},  # beyond the phase
        {"data_step": 15, "phase_steps": (10, 20)},  # more than in all phases together
        {"phase": 2},
        {"ended": ()},  # although phase 0 has ended
        {"flops": -1.0},
        {"flops": 1e31},
        {"phase_steps": (10, 0)},
    ],
)
def test_where_no_training_can_have_been_is_refused(tmp_path: Path, impossible: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError, match="no training can be in this state"):
        state_of(written(tmp_path / "step-000000014", asdict(STOOD) | impossible))


@each_row("wrong", [{"seconds": "long"}, {"sessions": 3}, {"phase": 0.5}, {"heldout": [1.0]}])
def test_a_value_of_another_type_is_refused_with_its_place(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError, match=next(iter(wrong))):
        state_of(written(tmp_path / "step-000000014", asdict(STOOD) | wrong))


def test_a_dropped_update_counts_as_drawn_and_not_as_applied() -> None:
    once = STOOD.next_step(applied=False, sequences=8, tokens=60, seconds=0.5, scale=None)
    twice = once.next_step(applied=False, sequences=8, tokens=60, seconds=0.5, scale=None)
    assert (twice.data_step, twice.optimizer_step, twice.total_steps, twice.skipped_in_a_row) == (6, 3, 16, 2)
    assert (twice.sequences_seen, twice.tokens_seen, twice.seconds) == (128, 1020, 3.5)
    applied = twice.next_step(applied=True, sequences=8, tokens=60, seconds=0.5, scale=None)
    assert (applied.optimizer_step, applied.skipped_in_a_row) == (4, 0)


def test_scores_are_of_one_step_alone() -> None:
    assert STOOD.next_step(applied=True, sequences=1, tokens=1, seconds=0.0, scale=None).heldout == {}
