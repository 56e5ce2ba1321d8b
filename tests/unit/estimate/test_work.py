"""The steps of a phase, and what a rank reads in each: by hand from batch, lengths and ranks."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.estimate.known_data import Data, read_data
from bertwright.estimate.work import PhaseWork, phase_work
from bertwright.examples.sequences import Sequences
from bertwright.train.memory.held_tensors import Sharing
from bertwright.train.memory.kept_numbers import Pass
from bertwright.train.memory.rank_memory import Computing
from bertwright.train.settings.phase_config import PhaseConfig

Load = Callable[..., Recipe]
ONE, FOUR = (Computing(Sharing(ranks=ranks)) for ranks in (1, 4))


def work(
    mean: float = 100.0, deviation: float = 30.0, steps: int | None = 50, longest: int = 128, **keys: Any
) -> PhaseWork:
    """A phase of length 128 and batch 64."""
    values = {"length": 128, "batch": 64, "learning_rate": 1e-3, "steps": 50, **keys}
    return PhaseWork(0, PhaseConfig.model_validate(values), steps, 3200, Sequences((), mean, deviation, longest))


@each_row(
    ("keys", "ranks", "passes", "sequences"),
    [
        ({}, 1, 1, 64),
        ({"micro_batch": 8}, 1, 8, 8),
        ({"micro_batch": 8}, 4, 2, 8),
        ({"micro_batch": 8}, 3, 3, 7),  # 22 sequences for a rank
        ({"micro_batch": 60}, 4, 1, 16),
        ({"micro_tokens": 1000}, 1, 7, 9),  # 64 sequences of 100 tokens
        ({"micro_tokens": 1000}, 64, 1, 1),
        ({"micro_batch": 8, "packing": True}, 1, 7, 9),  # 50 rows of 128 tokens
        ({"micro_batch": 8, "packing": True}, 64, 1, 1),
    ],
)
def test_a_ranks_share_is_split_into_forward_passes(
    keys: dict[str, Any], ranks: int, passes: int, sequences: int
) -> None:
    found = work(**keys)
    assert (found.micro_batches(ranks), found.micro_sequences(ranks)) == (passes, sequences)


def test_the_largest_pass_has_the_longest_sequences() -> None:
    """Sequences are sorted by length, so the longest eighth shares a pass. The mean of the upper eighth of a normal
    distribution is 1.6468 deviations above its mean."""
    found = work(mean=60.0, deviation=20.0, micro_batch=8).largest_pass(ONE)
    mean = 60 + 1.6468 * 20
    assert (found.sequences, found.longest) == (8, 128)
    assert found.tokens == pytest.approx(8 * mean, rel=1e-4)
    assert found.pairs == pytest.approx(8 * mean * mean, rel=1e-4), "the sequences of a pass are of similar length"


def test_sequences_are_at_most_as_long_as_the_phase() -> None:
    assert work(mean=120.0, deviation=20.0, micro_batch=8).largest_pass(ONE).tokens == 8 * 128


def test_a_single_pass_is_the_largest_mean_of_all_steps() -> None:
    """The expected largest of 50 normal values is 2.2491 deviations above their mean; the mean of 64 sequences
    deviates an eighth as much as one does."""
    found = work(mean=60.0, deviation=20.0).largest_pass(ONE)
    mean = 60 + 2.2491 * 20 / 8
    assert found.tokens == pytest.approx(64 * mean, rel=1e-3)
    assert found.pairs == pytest.approx(found.tokens * max(mean, (60**2 + 20**2) / 60))
    one = work(mean=60.0, deviation=20.0, steps=1).largest_pass(ONE)
    assert one.tokens == pytest.approx(64 * 60), "a single step is not above the mean"
    unknown, thousand = (work(60.0, 20.0, steps).largest_pass(ONE).tokens for steps in (None, 1000))
    assert unknown == thousand > found.tokens


def test_passes_of_tokens_and_of_rows_are_full() -> None:
    squares = (100**2 + 30**2) / 100
    tokens = work(micro_tokens=1000).largest_pass(ONE)
    assert (tokens.tokens, tokens.pairs) == (1000, pytest.approx(1000 * squares))
    rows = work(packing=True, micro_batch=8).largest_pass(ONE)
    assert (rows.sequences, rows.tokens, rows.pairs) == (8, 8 * 128, pytest.approx(8 * 128 * squares))
    assert work(packing=True, micro_batch=60).largest_pass(FOUR).tokens == 16 * 128, "a rank has 16 sequences"


def test_no_pass_is_larger_than_the_longest_example_makes_it() -> None:
    """Rows are as long as the longest example, whatever the phase allows, and tokens are as many as in such rows."""
    short = {"mean": 11.0, "deviation": 5.0, "longest": 47}
    found = work(**short).largest_pass(ONE)
    assert found.longest == 47 and found.tokens == pytest.approx(64 * (11 + 2.2491 * 5 / 8), rel=1e-3)
    assert work(**short, micro_batch=8).largest_pass(ONE).longest == 47
    assert work(mean=40.0, deviation=20.0, longest=47, micro_batch=8).largest_pass(ONE).tokens == 8 * 47
    tokens = work(**short, micro_tokens=940).largest_pass(ONE)
    assert (tokens.sequences, tokens.tokens, tokens.longest) == (20, 940, 47)


def test_packed_and_fixed_rows_are_full() -> None:
    short = {"mean": 11.0, "deviation": 5.0, "longest": 47}
    assert work(**short, packing=True, micro_batch=8).largest_pass(ONE).longest == 128
    fixed = replace(ONE, full_rows=True)
    assert work(**short).largest_pass(fixed) == Pass.full(64, 128)
    assert work(**short, micro_batch=8, packing=True).largest_pass(fixed) == Pass.full(8, 128)


def test_the_longest_row_of_a_pass_grows_with_its_sequences() -> None:
    """The expected largest of 50 normal values is 2.2491 deviations above their mean."""
    found = work(mean=60.0, deviation=20.0, longest=110)
    assert found.row(1) == pytest.approx(60)
    assert found.row(50) == pytest.approx(60 + 2.2491 * 20, abs=0.2)
    assert found.row(5000) == 110, "no longer than the longest"
    assert work(mean=60.0, packing=True, micro_batch=8).row(2) == 128


def test_predictions_follow_the_rate_up_to_the_maximum() -> None:
    """At 15 % of 100 tokens, one more than 15 are reckoned with, because each sequence rounds up."""
    assert work().predictions == pytest.approx(16.0)
    assert work(masking={"max_predictions": 12}).predictions == 12
    assert work(masking={"count": "bernoulli"}).predictions == pytest.approx(15.0)
    assert work(masking={"rate": 0.4}).predictions == pytest.approx(41.0)


def planned(recipe: Recipe, per_pass: tuple[int, ...] = (100, 60), mean: float = 12.0) -> PhaseWork:
    """The work of the first phase, with known examples of length 16."""
    data: Data = replace(read_data(recipe, {}), sets={"16": Sequences(per_pass, mean, 2.0, 16)})
    return phase_work(recipe, 0, data)


@each_row(
    ("length", "steps", "sequences", "epochs"),
    [
        ("steps=10", 10, 80, 0.8),
        ("samples=80", 10, 80, 0.8),
        ("samples=81", 11, 88, 0.88),
        ("tokens=960", 10, 80, 0.8),  # 80 sequences of 12 tokens
        ("epochs=1", 13, 104, 1 + 4 / 60),  # the first pass has 100 examples: 12 batches of 8, and a half
        ("epochs=2", 20, 160, 2),
        ("epochs=3", 33, 264, 3 + 4 / 60),  # the third reads the first pass again
        ("epochs=1.5", 17, 136, 1.6),
        ("epochs=2.5", 27, 216, 2.56),
    ],
)
def test_a_length_is_resolved_to_steps(length: str, steps: int, sequences: int, epochs: float, load: Load) -> None:
    found = planned(load("train.phases.0.steps=", f"train.phases.0.{length}"))
    assert (found.steps, found.sequences, found.epochs) == (steps, sequences, pytest.approx(epochs))
    assert found.tokens == pytest.approx(sequences * 12.0)


def test_a_phase_ends_at_end_after(load: Load) -> None:
    phase = "train.phases.0"
    assert planned(load(f"{phase}.steps=10", f"{phase}.end_after=4")).steps == 4
    assert planned(load(f"{phase}.steps=", f"{phase}.samples=80", f"{phase}.end_after=40")).steps == 10


def test_unknown_examples_leave_only_values_of_the_recipe(load: Load) -> None:
    steps = planned(load(), per_pass=())
    assert (steps.steps, steps.sequences, steps.epochs) == (3, 24, None)
    found = planned(load("train.phases.0.steps=", "train.phases.0.epochs=2"), per_pass=())
    assert (found.steps, found.sequences, found.tokens, found.epochs) == (None, None, None, None)


def test_data_that_nothing_is_known_about_is_nearly_full(load: Load, tmp_path: object) -> None:
    recipe = load()
    found = phase_work(recipe, 0, replace(read_data(recipe, {}), sets={}))
    assert found.mean_length == pytest.approx(0.95 * 16) and found.epochs is None


def test_a_mean_square_is_that_of_mean_and_deviation() -> None:
    found = work(mean=3.0, deviation=4.0, micro_tokens=256).largest_pass(ONE)
    assert math.sqrt(found.pairs / found.tokens * 3.0) == pytest.approx(5.0)
