"""Settings for steps that the phases do not have: each is named, and its nearest neighbour is not."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.rows import each_row
from tests.unit.train.conftest import PHASES
from tests.unit.train.test_guard import Lines

from bertwright.core.artifact import Artifact
from bertwright.core.errors import RecipeError
from bertwright.train.config import TrainConfig
from bertwright.train.settings.unreachable_settings import known_ends, partly_reached_settings, unreachable_settings

PHASE = {"length": 16, "batch": 8, "learning_rate": 1e-3, "steps": 20}
UNKNOWN = {**PHASE, "steps": None, "epochs": 2.0}
GROWS = {"batch_warmup": [[0, 4], [20, 8]]}
TARGET = {"target_accuracy": 0.5}


def settings_of(*phases: dict[str, Any], **keys: Any) -> TrainConfig:
    return TrainConfig.model_validate({"phases": [{**PHASE, **phase} for phase in phases or ({},)], **keys})


def keys(config: TrainConfig, *steps: int) -> list[str]:
    return [key for key, _ in unreachable_settings(config, steps)]


@each_row(
    ("phase", "settings", "key", "says"),
    [
        (
            GROWS,
            {},
            "train.phases.0.batch_warmup",
            "reaches batch 8 at step 20, but the phase has 20 steps (train.phases.0.steps), counted from 0; let it "
            "grow earlier, or make the phase longer",
        ),
        (
            {"masking": {"rate": [[0, 0.3], [5, 0.2], [20, 0.15]]}},
            {},
            "train.phases.0.masking.rate",
            "has a rate from step 20 on, but the phase has 20 steps (train.phases.0.steps), counted from 0; leave "
            "that pair out, or make the phase longer",
        ),
        (
            TARGET,
            {"evaluate_every": 20},
            "train.phases.0.target_accuracy",
            "0.5 is looked for every 20 steps (train.evaluate_every), but the phase ends after 20 steps "
            "(train.phases.0.steps) in any case; lower train.evaluate_every, or leave it out",
        ),
        (
            {},
            {"guard": {"spike": 10, "loss_spike": 2, "window": 20}},
            "train.guard.window",
            "the first 20 updates of a phase are not judged, but no phase (train.phases) has more than 20; lower it, "
            "or leave train.guard.spike and train.guard.loss_spike out",
        ),
    ],
)
def test_what_no_step_reaches_is_said_with_both_keys(
    phase: dict[str, Any], settings: dict[str, Any], key: str, says: str
) -> None:
    config = settings_of(phase, **settings)
    assert list(unreachable_settings(config)) == [(key, says)]
    assert keys(config, 20) == [key] and keys(config, 21) == []
    # A length that depends on the examples may be enough.
    unknown = settings_of({**UNKNOWN, **phase}, **settings)
    assert keys(unknown) == [] and keys(unknown, 20) == [key]
    assert dict(unreachable_settings(unknown, [20]))[key] == says.replace("phases.0.steps", "phases.0.epochs")


def test_one_phase_with_an_update_to_judge_is_enough() -> None:
    guard = {"spike": 10, "window": 20}
    assert keys(settings_of({}, {"steps": 21}, guard=guard)) == keys(settings_of({}, UNKNOWN, guard=guard)) == []


def test_steps_of_samples_follow_growing_batches() -> None:
    grown = {"steps": None, "batch_warmup": [[0, 4], [10, 8]]}
    assert keys(settings_of({**grown, "samples": 40})) == ["train.phases.0.batch_warmup"]
    assert keys(settings_of({**grown, "samples": 41})) == []


def test_a_phase_of_hours_is_scored_at_each_tenth_of_them() -> None:
    assert keys(settings_of({**TARGET, "hours": 1}, evaluate_every=1000)) == []
    assert keys(settings_of(TARGET, evaluate_every=0)) == [], "ten times per phase"


def test_a_length_from_the_data_is_checked_once_known(train: Callable[..., Artifact]) -> None:
    phase = {**PHASES[0], "steps": None, "epochs": 1e-9, "batch_warmup": [[0, 4], [1, 8]]}
    with pytest.raises(RecipeError, match=r"^train\.phases\.0\.batch_warmup: reaches batch 8 at step 1, but the phase"):
        train(phases=[phase])


def test_a_band_and_copies_that_no_step_has_are_named() -> None:
    config = settings_of({}, {}, expected=[{"step": 40, "high": 3}, {"step": 41, "high": 3}], averaging="last")
    says = "step 41 comes after the 40 steps of all phases (train.phases), so no loss is compared with this band."
    assert list(partly_reached_settings(config, [20, 20])) == [
        ("train.expected.1", says, "Lower its step, or leave it out.")
    ]
    for count, copies in ((4, None), (5, 4)):
        config = settings_of({}, {}, averaging={"kind": "last", "every": 9, "count": count})
        says = (
            f"train.averaging.count is {count}, but the 40 steps of all phases (train.phases) give only {copies} "
            "copies with train.averaging.every = 9."
        )
        assert list(partly_reached_settings(config, [20, 20])) == (
            [("train.averaging", says, "Lower one of the two.")] * bool(copies)
        )


def test_ends_are_known_unless_they_depend_on_the_examples() -> None:
    assert known_ends(settings_of({}, {"end_after": 7}, {"steps": None, "samples": 17})) == [20, 7, 3]
    assert known_ends(settings_of({}, {**UNKNOWN, "end_after": 7})) == [20, 7]
    assert known_ends(settings_of({}, UNKNOWN)) is None


def test_training_says_it_of_lengths_that_only_the_data_tells(train: Callable[..., Artifact]) -> None:
    lines, expected = Lines(0), [{"step": 1000, "high": 99}]
    train("known", log=lines, expected=expected)
    assert not [line for line in lines.said if line.startswith("warning")], "check has said it"
    train("unknown", phases=[{**PHASES[0], "steps": None, "epochs": 1e-9}], log=lines, expected=expected)
    (line,) = [line for line in lines.said if line.startswith("warning")]
    assert line.startswith("warning: train.expected.0: step 1,000 comes after the 1 steps of all phases")
