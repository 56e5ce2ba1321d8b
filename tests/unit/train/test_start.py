"""Which phase lengths a state may go on with, and on what device."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.rows import each_row

from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.train.settings.phase_changes import check_phase_lengths
from bertwright.train.setup.training_environment import training_device
from bertwright.train.state import PhaseEnd, State


def phases(*lengths: int, ends: dict[int, int] | None = None, target: float | None = None) -> list[Any]:
    return [
        SimpleNamespace(index=i, schedule_steps=length, steps=(ends or {}).get(i, length), target_accuracy=target)
        for i, length in enumerate(lengths)
    ]


def at(phase: int, step: int, *lengths: int, ends: tuple[int, ...] = ()) -> State:
    ended = tuple(
        PhaseEnd(i, end, early=False, target_accuracy=None) for i, end in enumerate((ends or lengths)[:phase])
    )
    return State(phase=phase, data_step=step, phase_steps=lengths, phase_ends=ends or lengths, ended=ended)


def test_the_first_start_takes_the_lengths_of_the_recipe() -> None:
    state = check_phase_lengths(State(), phases(10, 20))
    assert (state.phase_steps, state.phase_ends, state.extensions) == ((10, 20), (10, 20), ())


def test_what_has_not_begun_may_change_without_a_trace() -> None:
    assert check_phase_lengths(at(0, 5, 10, 20), phases(10, 7)).extensions == ()
    assert check_phase_lengths(at(0, 0, 10, 20), phases(3, 20)).phase_steps == (3, 20)
    assert check_phase_lengths(at(0, 5, 10), phases(10, 20)).phase_steps == (10, 20), "a phase was added"


def test_growth_after_the_beginning_is_remembered_each_time() -> None:
    once = check_phase_lengths(at(0, 5, 10), phases(12))
    twice = check_phase_lengths(once, phases(15))
    assert [dict(e) for e in twice.extensions] == [
        {"phase": 0, "step": 5, "from": 10, "to": 12},
        {"phase": 0, "step": 5, "from": 12, "to": 15},
    ]


def test_a_phase_under_way_does_not_shrink() -> None:
    with pytest.raises(
        ArtifactError, match=r"phases\.0 was begun with 10 .* says 8.* may become longer, but not shorter.*end_after"
    ):
        check_phase_lengths(at(0, 5, 10), phases(8))


@each_row("length", [9, 11])
def test_a_phase_that_has_ended_keeps_its_length(length: int) -> None:
    with pytest.raises(ArtifactError, match=r"phases\.0 was trained with 10 .* has ended and cannot change"):
        check_phase_lengths(at(1, 0, 10, 20), phases(length, 20))


def test_a_phase_that_was_ended_early_is_to_be_ended_there_again() -> None:
    ended = at(1, 2, 10, 20, ends=(6, 20))
    assert check_phase_lengths(ended, phases(10, 20, ends={0: 6})).phase_ends == (6, 20)
    with pytest.raises(ArtifactError, match=r"has ended after step 6 .* Set train\.phases\.0\.end_after=6"):
        check_phase_lengths(ended, phases(10, 20))
    with pytest.raises(ArtifactError, match=r"Set train\.phases\.0\.end_after=, or train in another folder"):
        check_phase_lengths(at(1, 2, 10, 20), phases(10, 20, ends={0: 6}))


def reached(step: int, target: float | None = 0.5) -> State:
    """Phase 0 of 10 steps has ended before them, at its target or, without one, because its time was used up."""
    return replace(at(1, 2, 10, 20), ended=(PhaseEnd(0, step, early=True, target_accuracy=target),))


@each_row("target", [None, 0.5])
def test_an_early_end_allows_any_later_planned_end(target: float | None) -> None:
    for end in (6, 7, 10):
        state = check_phase_lengths(reached(6, target), phases(10, 20, ends={0: end}, target=target))
        assert state.phase_ends == (end, 20) and state.ends == (6, 20)
    with pytest.raises(ArtifactError, match=r"has ended after step 6 and cannot end after 5 now\. Set .*end_after=6,"):
        check_phase_lengths(reached(6, target), phases(10, 20, ends={0: 5}, target=target))


@each_row(
    ("was", "now", "said"),
    [
        (
            0.5,
            0.75,
            r"with target_accuracy 0\.5, but the recipe now has target_accuracy 0\.75\. .*target_accuracy=0\.5,",
        ),
        (0.5, None, r"with target_accuracy 0\.5, but the recipe now has no target_accuracy\. .*target_accuracy=0\.5,"),
        (None, 0.5, r"with no target_accuracy, but the recipe now has target_accuracy 0\.5\. .*target_accuracy=, or"),
    ],
)
def test_a_phase_that_has_ended_keeps_its_target(was: float | None, now: float | None, said: str) -> None:
    with pytest.raises(ArtifactError, match=rf"train\.phases\.0 has ended after step 6 {said}"):
        check_phase_lengths(reached(6, was), phases(10, 20, target=now))


def test_a_phase_that_ended_as_planned_may_not_end_before() -> None:
    assert check_phase_lengths(at(1, 2, 10, 20), phases(10, 20)).ends == (10, 20)
    with pytest.raises(ArtifactError, match=r"has ended after step 10 and cannot end after 6 now"):
        check_phase_lengths(at(1, 2, 10, 20), phases(10, 20, ends={0: 6}))


def test_a_phase_ends_at_no_step_that_has_passed() -> None:
    assert check_phase_lengths(at(0, 5, 10), phases(10, ends={0: 5})).phase_ends == (5,)
    with pytest.raises(ArtifactError, match=r"end_after=4: step 5 is already done.*set train\.phases\.0\.end_after=5"):
        check_phase_lengths(at(0, 5, 10), phases(10, ends={0: 4}))


def test_ranks_do_not_share_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    assert training_device("cpu").type == "cpu" and not taken
    for place in range(2):
        monkeypatch.setenv("LOCAL_RANK", str(place))
        assert training_device("auto") == torch.device("cuda", place) and taken[-1] == place
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(RecipeError, match=r"rank 3 of this machine has no GPU: torch finds 2, .* train\.device=cpu"):
        training_device("auto")
