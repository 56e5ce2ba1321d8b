"""The search of an autotuning: which sizes are tried, when a line ends, what a step of the whole batch takes."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.check.machine.computing import computing
from bertwright.cli.bench import _write_fastest
from bertwright.cli.options import Run
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.trial import autotune
from bertwright.trial.attempt import Tried
from bertwright.trial.autotune import first_size, keys_of, open_table, sizes_to_try
from bertwright.trial.search import Candidate, Outcome, Sizes, Trial, best, halves, search, sizes, step_seconds

MACHINE = {"machine": "one", "torch": "2.13.0"}


def measured(seconds: dict[int, float], fails: dict[int, Outcome] | None = None) -> Callable[[Candidate], Trial]:
    def attempt(candidate: Candidate) -> Trial:
        if outcome := (fails or {}).get(candidate.micro_batch):
            return Trial(candidate, outcome)
        return Trial(candidate, "trained", seconds=seconds[candidate.micro_batch], memory_bytes=candidate.micro_batch)

    return attempt


def outcomes(trials: list[Trial]) -> dict[int, str]:
    return {trial.candidate.micro_batch: trial.outcome for trial in trials}


def test_sizes_are_powers_of_two_from_the_first_and_the_whole_share() -> None:
    assert sizes(48, 5) == [4, 8, 16, 32, 48] and sizes(8, 100) == [8] and sizes(1, 1) == [1]
    assert halves(10) == [5, 2, 1] and halves(1) == []


def test_a_line_ends_where_two_sizes_in_a_row_are_no_faster() -> None:
    seconds = {1: 8.0, 2: 5.0, 4: 5.0, 8: 4.99, 16: 1.0, 32: 1.0}
    trials = list(search([("auto", False)], Sizes([1, 2, 4, 8, 16, 32]), measured(seconds)))
    assert outcomes(trials) == {1: "trained", 2: "trained", 4: "trained", 8: "trained", 16: "left-out", 32: "left-out"}
    assert trials[-1].why == "2 consecutive smaller ones were not faster"
    # 2 is as fast as 8, and takes less memory.
    assert (found := best(trials)) and found.candidate.micro_batch == 2


def test_sizes_that_do_not_fit_are_halved() -> None:
    fails: dict[int, Outcome] = {8: "out-of-memory", 4: "too-slow"}
    trials = list(search([("zero", True)], Sizes([8, 16], [4, 2, 1]), measured({2: 1.0, 1: 1.5}, fails)))
    assert outcomes(trials) == {8: "out-of-memory", 16: "left-out", 4: "too-slow", 2: "trained", 1: "trained"}
    assert (found := best(trials)) and found.candidate.micro_batch == 2
    refused = list(search([("zero", True)], Sizes([8, 16], [4, 2, 1]), measured({}, {8: "failed"})))
    assert outcomes(refused) == {8: "failed", 16: "left-out"} and best(refused) is None


def test_what_just_fits_is_not_for_that_the_fastest() -> None:
    fails: dict[int, Outcome] = {64: "out-of-memory"}
    seconds = {32: 9.0, 16: 4.0, 8: 4.5, 4: 6.0, 2: 1.0}
    trials = list(search([("auto", False)], Sizes([64], [32, 16, 8, 4, 2, 1]), measured(seconds, fails)))
    assert list(outcomes(trials)) == [64, 32, 16, 8, 4], "two in a row that are no faster end it"
    assert (found := best(trials)) and found.candidate.micro_batch == 16


def test_of_requested_sizes_no_smaller_ones_are_tried(tried: Tried) -> None:
    requested = sizes_to_try(tried, [32, 16])
    assert requested == Sizes([16, 32])
    trials = list(search([("auto", False)], requested, measured({}, {16: "out-of-memory"})))
    assert outcomes(trials) == {16: "out-of-memory", 32: "left-out"} and best(trials) is None
    found = sizes_to_try(tried, None)
    assert found.tried[-1] == tried.share and found.smaller == halves(found.tried[0])


@each_row(
    ("one", "two", "passes", "whole"), [(3.0, 5.0, 10, 21.0), (2.0, 4.0, 1, 2.0), (4.0, 3.0, 4, 4 - 0.75 + 4 * 0.75)]
)
def test_a_pass_more_takes_what_two_take_more_than_one(one: float, two: float, passes: int, whole: float) -> None:
    assert step_seconds(one, two, passes) == pytest.approx(whole)


@pytest.fixture
def tried() -> Tried:
    return Tried(Recipe.load("hu-mini", ["corpus.source=sample"]), phase=1, ranks=2, steps=3, limit=10.0)


def test_a_trial_has_one_pass_then_two_on_the_same_examples(tried: Tried) -> None:
    assert tried.share == 64
    recipe = tried.recipe_for(Candidate("zero", True, 16))
    assert recipe.plan_sets() == tried.recipe.plan_sets() and recipe.train.engine.kind == "zero"
    before, phase = recipe.train.phases
    assert (before.steps, before.batch) == (1, 2)
    assert (phase.steps, phase.batch, phase.micro_batch, phase.batch_warmup) == (8, 64, 16, ((0, 32), (4, 64)))
    whole = tried.recipe_for(Candidate("ddp", False, 64)).train.phases[1]
    assert (whole.steps, whole.batch, whole.batch_warmup) == (4, 128, ())
    with pytest.raises(RecipeError, match="deepspeed"):
        tried.recipe_for(Candidate("deepspeed", False, 16))


def test_a_trial_is_valid_beside_packing_and_averaging() -> None:
    given = ["corpus.source=sample", "train.graph=compiled", "train.phases.0.packing=true"]
    given += ["train.phases.0.micro_batch=2", "train.phases.1.packing=false", "train.averaging=last"]
    tried = Tried(Recipe.load("hu-mini", given), phase=1, ranks=1, steps=3, limit=10.0)
    recipe = tried.recipe_for(Candidate("auto", False, 8))
    assert not [verdict.text for verdict in computing(recipe, ["train"]) if verdict.about == "train.averaging"]


def test_a_trial_reaches_nothing_that_is_set_for_later_steps() -> None:
    given = ["corpus.source=sample", "train.compare_ranks_every=5", "train.guard.spike=10"]
    given += [f"train.phases.{i}.masking.rate=[[0, 0.2], [90, 0.3], [100, 0.1]]" for i in (0, 1)]
    tried = Tried(Recipe.load("hu-mini", given), phase=1, ranks=2, steps=3, limit=10.0)
    recipe = tried.recipe_for(Candidate("fsdp", False, 64))
    assert [phase.masking.rate for phase in recipe.train.phases] == [0.3, 0.3], "the most memory"


def test_a_table_resumes_only_with_the_same_settings(tmp_path: Path, tried: Tried) -> None:
    trial = Trial(Candidate("zero", False, 4), "trained", 16, 1.5, 10**9)
    with open_table(tmp_path / "run", tried, MACHINE) as table:
        table.keep(trial)
    with open_table(tmp_path / "run", tried, MACHINE) as table:
        assert table.trials == {trial.candidate: trial}
    other = Tried(tried.recipe, 1, 4, 3, 10.0)
    with pytest.raises(ArtifactError, match=r"other settings \(ranks\)"), open_table(tmp_path / "run", other, MACHINE):
        pass
    newer = {**MACHINE, "torch": "2.14.0"}
    with pytest.raises(ArtifactError, match=r"settings \(torch\)"), open_table(tmp_path / "run", tried, newer):
        pass
    for override, named in (
        ("vocab.size=200", "vocab, entries"),
        ('train.engine={kind="ddp", reduction="bf16"}', "train"),
        ("corpus.language=de", "corpus"),
        ("examples.passes=3", "examples"),
    ):
        changed = replace(tried, recipe=Recipe.load("hu-mini", ["corpus.source=sample", override]))
        with pytest.raises(ArtifactError, match=rf"\({named}\)"), open_table(tmp_path / "run", changed, MACHINE):
            pass
    same = ["corpus.source=sample", "corpus.workers=3", "examples.workers=3", "corpus.cache_dir=elsewhere"]
    with open_table(tmp_path / "run", replace(tried, recipe=Recipe.load("hu-mini", same)), MACHINE) as table:
        assert table.trials == {trial.candidate: trial}
    table.file.write_text(json.dumps([]))
    with pytest.raises(ArtifactError, match="is not a table of autotune"), open_table(tmp_path / "run", tried, MACHINE):
        pass
    shutil.rmtree(table.folder)


@each_row(("name", "preset"), [("azure-glue", "bert-base-deepspeed"), ("azure-glue", ""), ("mlperf-large", "1536")])
def test_what_is_written_loads_with_the_preset_and_what_was_found(name: str, preset: str, tmp_path: Path) -> None:
    given = [f"preset={preset}"] if preset else []
    tried = Tried(Recipe.load(name, given), phase=0, ranks=1, steps=3, limit=10.0)
    trial = Trial(Candidate("auto", True, 16), "trained", 2, 1.0)
    _write_fastest(tmp_path / "mine.toml", Run(Path(name), given), trial, tried)
    found = Recipe.load(tmp_path / "mine.toml")
    phase = found.train.phases[0]
    assert (phase.micro_batch, found.train.engine.kind, found.train.checkpoint_activations) == (16, "auto", True)
    expected = Recipe.load(
        name, [*given, *(f"{key}={value}".lower() for key, value in keys_of(tried, trial.candidate).items())]
    )
    assert found == expected and phase.batch == tried.recipe.train.phases[0].batch


def test_failures_are_retried_and_slow_trials_with_more_time(tmp_path: Path, tried: Tried) -> None:
    kept: list[Outcome] = ["trained", "out-of-memory", "too-slow", "failed"]
    with open_table(tmp_path / "run", tried, MACHINE) as table:
        for size, outcome in enumerate(kept, 1):
            table.keep(Trial(Candidate("zero", False, size), outcome, seconds=1.0))
    for limit, stand in ((5.0, kept[:3]), (10.0, kept[:3]), (600.0, kept[:2])):
        with open_table(tmp_path / "run", replace(tried, limit=limit), MACHINE) as table:
            assert [trial.outcome for trial in table.trials.values()] == stand


def test_the_first_size_follows_from_the_memory_of_what_trains(tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    large = replace(tried, recipe=Recipe.load("hu-mini", ["corpus.source=sample", "train.phases.1.batch=1_000_000"]))
    found = []
    for gigabytes in (24, 240):
        monkeypatch.setattr(autotune, "training_gpus", lambda recipe, size=gigabytes * 10**9: (size, 2 * size))
        found.append(first_size(large))
    # What weights and moments take is little; the rest of ten times the memory holds ten times the sequences.
    assert found[0] * 9 < found[1] < found[0] * 13 and found[0] > 10
