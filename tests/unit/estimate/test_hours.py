"""Hours of a phase and of each stage, by hand from the speeds that were measured."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.estimate.hours import PhaseTime, count_events, phase_time, stage_seconds
from bertwright.estimate.known_data import Data, read_data
from bertwright.estimate.machine import HardwareConfig, machine_of
from bertwright.estimate.work import phase_work

Load = Callable[..., Recipe]
MACHINE = machine_of(HardwareConfig(cores=4))


def time_of(recipe: Recipe, step: float = 2.0, heldout: dict[str, int] | None = None, gpu: bool = False) -> PhaseTime:
    data = replace(read_data(recipe, {}), heldout=heldout or {})
    found = phase_time(recipe, phase_work(recipe, 0, data), step, data, gpu)
    assert found is not None
    return found


@each_row(
    ("every", "steps", "often"), [(3, 9, 3), (3, 10, 4), (100, 9, 1), (0, 9, 9), (0, 10, 10), (0, 1000, 10), (0, 25, 9)]
)
def test_what_happens_every_so_many_steps_happens_at_the_end_too(every: int, steps: int, often: int) -> None:
    """0 is ten times, as far as steps can be parted so."""
    assert count_events(every, steps, None) == often


def test_epochs_and_the_end_are_counted() -> None:
    assert (count_events("epoch", 100, 2.5), count_events("epoch", 100, 3.0), count_events("epoch", 2, 3.0)) == (
        3,
        3,
        2,
    )


def test_steps_scores_and_checkpoints_are_added_up(load: Load) -> None:
    recipe = load("train.phases.0.steps=20", "train.evaluate_every=5", "train.checkpoint_every=10")
    found = time_of(recipe)
    assert (found.steps, found.seconds) == (20, 40.0)
    # Four scores of 8 held-out sequences at a third of training's price, of which a step has 8.
    assert found.scoring == pytest.approx(4 * 2.0 / 3)
    assert found.saving == pytest.approx(2 * 12 * recipe.network().parameters / 400e6)
    assert found.total == pytest.approx(found.seconds + found.scoring + found.saving)


def test_fewer_held_out_sequences_are_scored_sooner(load: Load) -> None:
    recipe = load("train.phases.0.steps=20", "train.evaluate_every=5")
    assert time_of(recipe, heldout={"16": 4}).scoring == pytest.approx(time_of(recipe).scoring / 2)
    assert time_of(recipe, heldout={"16": 400}).scoring == pytest.approx(time_of(recipe).scoring)


def test_saving_beside_training_takes_no_time_of_it(load: Load) -> None:
    for gpu in (False, True):
        beside, waiting = (time_of(load(f"train.save_async={wanted}"), gpu=gpu) for wanted in ("true", "false"))
        assert beside.saving == 0 < waiting.saving


def test_gpu_checkpoints_are_saved_beside_training(load: Load) -> None:
    assert time_of(load(), gpu=True).saving == 0 < time_of(load(), gpu=False).saving


def test_a_growing_batch_takes_less_time_in_proportion(load: Load) -> None:
    recipe = load("train.phases.0.steps=10", "train.phases.0.batch_warmup=[[0,4],[6,8]]")
    assert time_of(recipe).seconds == pytest.approx(2.0 * (6 * 4 + 4 * 8) / 8)


def test_a_phase_of_hours_ends_with_them(load: Load) -> None:
    recipe = load("train.phases.0.steps=1000", "train.phases.0.hours=0.1")
    short = time_of(recipe)
    assert (short.steps, short.seconds) == (180, 360.0)
    assert time_of(recipe, step=0.1).steps == 1000, "where there is time for all"


def test_a_phase_of_unknown_length_has_no_time(load: Load) -> None:
    recipe = load("train.phases.0.steps=", "train.phases.0.epochs=1")
    data = replace(read_data(recipe, {}), sets={})
    assert phase_time(recipe, phase_work(recipe, 0, data), 1.0, data, gpu=False) is None


def of_stages(recipe: Recipe, text: float | None = 44e6, done: tuple[str, ...] = ()) -> dict[str, float | None]:
    data: Data = replace(read_data(recipe, {}), text=text, heldout={})
    return stage_seconds(recipe, data, MACHINE, 100.0, 0.01, done)


def test_every_stage_takes_its_share_and_three_seconds(load: Load) -> None:
    recipe = load("corpus.workers=2", "examples.workers=4", "evaluate.max_sequences=500")
    found = of_stages(recipe)
    assert found["corpus"] == pytest.approx(44 / 2.2 / 2 + 3)
    assert found["vocab"] == pytest.approx(44 / 6 + 3)
    assert found["examples"] == pytest.approx(44 / 9 / 4 * (1 + 2 / 10) + 3), "two passes"
    assert found["train"] == 103 and found["evaluate"] == pytest.approx(500 * 0.01 + 3)
    assert found["export"] == pytest.approx(8 * recipe.network().parameters / 400e6 + 3)


def test_workers_that_are_left_open_are_the_cores_of_the_machine(load: Load) -> None:
    assert of_stages(load("corpus.workers=0"))["corpus"] == pytest.approx(44 / 2.2 / 4 + 3)


def test_what_is_finished_or_not_known_takes_no_time(load: Load) -> None:
    found = of_stages(load(), None, ("corpus",))
    assert "corpus" not in found and found["vocab"] is None and found["examples"] is None and found["train"] == 103


def test_a_vocabulary_that_is_given_is_not_learnt(load: Load, tmp_path: object) -> None:
    path = f"{tmp_path}/vocab.txt"
    with open(path, "w", encoding="utf-8") as file:
        file.write("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    assert of_stages(load(f"vocab.file={path}", "vocab.size=", "vocab.alphabet_coverage="))["vocab"] == 3
