"""Hours, energy and cost of a run, and which stages are counted: by hand from the seconds of each stage."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.estimate import measurement_cache
from bertwright.estimate.machine import HardwareConfig, Machine, machine_of
from bertwright.estimate.measurement_cache import Measured, key_of, read_measurement, store_measurements
from bertwright.estimate.work import PhaseWork
from bertwright.examples.sequences import Sequences
from bertwright.plan import plan

Load = Callable[..., Recipe]
MACHINE = machine_of(HardwareConfig(gpu="h100", gpus=8, nodes=2, watts=2000, price=3))
SECONDS = {"corpus": 1800.0, "train": 7200.0, "export": 1800.0}
DAY, NEXT = Measured(1.0, 1.0, "2026-01-02"), Measured(1.0, 1.0, "2026-01-03")


def spent(seconds: dict[str, float | None], measured: Any = (None,), machine: Machine = MACHINE) -> Any:
    return plan._spent(seconds, measured, machine)


def test_all_machines_train_and_one_does_the_rest() -> None:
    """Half an hour, two hours on two machines, and half an hour."""
    found = spent(SECONDS)
    assert found["hours"] == {"corpus": 0.5, "train": 2.0, "export": 0.5} and found["total_hours"] == 3.0
    assert (found["energy_kwh"], found["cost"]) == (5 * 2.0, 5 * 3.0)
    assert spent(SECONDS, machine=replace(MACHINE, price=0.0))["cost"] is None


def test_unmeasured_forecasts_have_a_factor_of_two() -> None:
    for measured in ([None], [DAY, None]):
        found = spent(SECONDS, measured)
        assert (found["low_hours"], found["high_hours"], found["calibrated"]) == (1.5, 6.0, "")
    found = spent(SECONDS, [NEXT, DAY])
    assert (found["low_hours"], found["high_hours"]) == (pytest.approx(2.4), pytest.approx(3.9))
    assert "2026-01-02" in found["calibrated"], "the older of the two"


def test_an_unknown_stage_is_left_out_unless_it_is_the_training() -> None:
    found = spent({**SECONDS, "corpus": None})
    assert found["hours"]["corpus"] is None and found["total_hours"] == 2.5
    found = spent({**SECONDS, "train": None})
    assert [found[key] for key in ("total_hours", "low_hours", "high_hours", "energy_kwh", "cost")] == [None] * 5
    assert spent({"export": 1800.0})["total_hours"] == 0.5, "the training is finished"


@each_row(
    ("made", "done"),
    [
        ([], []),
        (["corpus"], ["corpus"]),
        (["examples", "vocab"], ["corpus", "vocab", "examples"]),
        (["train"], ["corpus", "vocab", "examples", "train"]),
    ],
)
def test_stages_before_a_finished_one_need_not_be_made(made: list[str], done: list[str]) -> None:
    assert plan._done(made) == done


def test_overall_speed_is_total_tokens_by_total_time() -> None:
    """10 seconds for 1,000 tokens and 10 for 3,000."""
    phases: Any = [{"tokens": 1000.0, "tokens_per_second": 100.0}, {"tokens": 3000.0, "tokens_per_second": 300.0}]
    assert plan._throughput(phases) == pytest.approx(200.0)
    assert plan._throughput([phases[0], {**phases[1], "tokens": None}]) == 100.0
    assert plan._throughput([{**phase, "tokens": None} for phase in phases]) == 100.0, "of the first phase"


@pytest.fixture
def cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.usefixtures("cache")
def test_only_the_newest_measurements_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement_cache, "_MOST", 3)
    store_measurements({"a": DAY, "b": DAY, "c": DAY})
    store_measurements({"a": NEXT, "d": DAY})
    assert [read_measurement(key) for key in "abcd"] == [NEXT, None, DAY, DAY], "what is measured again is new"


def test_a_measurement_on_processors_is_of_a_number_of_threads(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = load()
    work = PhaseWork(0, recipe.train.phases[0], 3, 24, Sequences((), 12.0, 2.0, 16))
    for sizes, number in (((), 3), ((80 * 10**9,), 1)):
        monkeypatch.setattr(measurement_cache, "training_gpus", lambda recipe, sizes=sizes: sizes)
        keys = set()
        for threads in ("1", "2", ""):
            monkeypatch.setenv("OMP_NUM_THREADS", threads)
            keys.add(key_of(recipe, work, 4))
        assert len(keys) == number


def test_a_measurement_is_of_what_takes_time_and_of_nothing_else(load: Load) -> None:
    recipe = load()
    work = PhaseWork(0, recipe.train.phases[0], 3, 24, Sequences((), 12.0, 2.0, 16))
    key, hardly_longer = key_of(recipe, work, 4), replace(work, steps=9, examples=Sequences((), 12.2, 2.0, 15))
    same = load("train.seed=9", "train.phases.0.learning_rate=0.5", "train.log_every=7", "corpus.workers=2")
    assert key_of(same, work, 4) == key_of(recipe, hardly_longer, 4) == key
    others = [
        key_of(load(override), work, 4)
        for override in (
            "train.graph=compiled",
            "train.precision=fp16",
            "train.attention=padded",
            "train.checkpoint_activations=true",
            "train.threads=1",
            "train.deterministic=true",
            "train.cpu_isa=avx2",
            "train.device=auto",
            "optim.kind=lamb",
            "model.dropout=0",
        )
    ]
    others += [key_of(recipe, work, 5), key_of(recipe, replace(work, examples=Sequences((), 13.0, 2.0, 16)), 4)]
    longer = replace(work, phase=work.phase.model_copy(update={"length": 32}))
    masked = load("train.phases.0.masking.rate=0.5").train.phases[0]
    others += [key_of(recipe, longer, 4), key_of(recipe, replace(work, phase=masked), 4)]
    assert len({key, *others}) == len(others) + 1
