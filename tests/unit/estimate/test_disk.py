"""Disk: at most while it is made, and what is left of it in the end."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.estimate.disk import checkpoint_bytes, disk_left, disk_of, examples_bytes, run_bytes
from bertwright.estimate.known_data import Data, read_data
from bertwright.estimate.work import PhaseWork, phase_work

Load = Callable[..., Recipe]
TEXT = 1e9


def data_of(recipe: Recipe, text: float | None = TEXT, **disk: int) -> Data:
    return replace(read_data(recipe, {}), text=text, disk=disk)


def works_of(recipe: Recipe, data: Data) -> list[PhaseWork]:
    return [phase_work(recipe, index, data) for index in range(len(recipe.train.phases))]


def left(recipe: Recipe, text: float | None = TEXT, **disk: int) -> dict[str, float | None]:
    data = data_of(recipe, text, **disk)
    return disk_left(recipe, data, works_of(recipe, data))


def checkpoints(recipe: Recipe) -> float:
    """How many checkpoints are left, by the bytes beside the model."""
    found = left(recipe)["train"]
    assert found is not None
    return (found - 4.0 * recipe.network().parameters) / checkpoint_bytes(recipe)


def test_what_is_left_is_without_scratch(load: Load) -> None:
    recipe = load()
    most, found = disk_of(recipe, data_of(recipe)), left(recipe)
    assert list(most) == list(found) == ["corpus", "examples", "train", "export"]
    assert most == {stage: run_bytes(recipe, TEXT)[stage] for stage in most}
    assert found["corpus"] == pytest.approx(0.35 * TEXT) and found["examples"] == examples_bytes(recipe, TEXT)
    assert found["export"] == most["export"] == 4.0 * recipe.network().parameters
    assert all((found[stage] or 0) <= (most[stage] or 0) for stage in most)


@each_row(
    ("overrides", "kept"),
    [
        (["train.keep_checkpoints=3"], 3),  # three steps, each of which is saved
        (["train.keep_checkpoints=5"], 3),
        (["train.keep_checkpoints=5", "train.checkpoint_every=2"], 2),  # after the second step and at the end
        (["train.keep_checkpoints=1", "train.phases.0.steps=1000"], 1),
    ],
)
def test_the_newest_checkpoints_are_kept(load: Load, overrides: list[str], kept: int) -> None:
    assert checkpoints(load(*overrides)) == pytest.approx(kept)


def test_of_each_phase_the_last_one_stays(two_phases: object) -> None:
    recipe = Recipe.load(two_phases, ["train.keep_checkpoints=1", "train.phases.0.steps=100"])  # type: ignore[arg-type]
    assert checkpoints(recipe) == pytest.approx(2)


def test_unknown_steps_count_all_checkpoints_that_may_be_kept(load: Load) -> None:
    recipe = load("train.phases.0.steps=", "train.phases.0.epochs=2", "train.keep_checkpoints=7")
    data = replace(data_of(recipe, None), sets={})
    found = disk_left(recipe, data, works_of(recipe, data))["train"]
    assert found == pytest.approx(7 * checkpoint_bytes(recipe) + 4.0 * recipe.network().parameters)


def test_an_average_is_kept_in_each_checkpoint(load: Load) -> None:
    plain, averaged = load(), load("train.averaging=ema")
    more = checkpoint_bytes(averaged) - checkpoint_bytes(plain)
    assert more == pytest.approx(4 * plain.network().parameters)


def test_an_unknown_text_has_no_size(load: Load) -> None:
    recipe = load()
    assert disk_of(recipe, data_of(recipe, None))["corpus"] is None
    found = left(recipe, None)
    assert found["corpus"] is None and found["examples"] is None and found["train"] is not None


def test_a_finished_stage_is_as_large_as_it_is(load: Load) -> None:
    recipe = load()
    assert disk_of(recipe, data_of(recipe, corpus=7, examples=9))["examples"] == 9
    found = left(recipe, corpus=7, examples=9)
    assert (found["corpus"], found["examples"]) == (7, 9)


def test_of_examples_that_were_brought_here_there_is_no_corpus(load: Load) -> None:
    recipe = load()
    assert list(left(recipe, examples=9)) == ["examples", "train", "export"]
