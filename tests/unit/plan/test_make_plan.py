"""The numbers of a whole plan that follow from one another, and the parts of its memory that are counted by hand."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.core.errors import RecipeError
from bertwright.estimate.known_data import read_data
from bertwright.estimate.machine import HardwareConfig, machine_of
from bertwright.estimate.memory import memory_of
from bertwright.estimate.work import phase_work
from bertwright.plan.plan import make_plan

Load = Callable[..., Recipe]
GPU = machine_of(HardwareConfig(gpu="h100", cores=16))


def test_a_phase_has_its_speed_hours_and_passes(load: Load) -> None:
    recipe = load("train.phases.0.steps=5000", "train.device=auto")
    plan = make_plan(recipe, {}, GPU)
    (phase,) = plan["phases"]
    mean = phase_work(recipe, 0, read_data(recipe, {})).mean_length
    assert (phase["steps"], phase["sequences"], phase["tokens"]) == (5000, 40_000, pytest.approx(40_000 * mean))
    assert (phase["micro_batch"], phase["micro_batches"]) == (4, 2)
    assert phase["tokens_per_second"] == pytest.approx(8 * mean / phase["step_seconds"]) == plan["tokens_per_second"]
    assert phase["hours"] and phase["hours"] > 5000 * phase["step_seconds"] / 3600, "scores are part of it"
    assert plan["hours"]["train"] == pytest.approx(phase["hours"] + 3 / 3600), "and three seconds to start"
    assert phase["memory_bytes"] == pytest.approx(sum(phase["memory"].values())) == plan["memory_bytes"]  # type: ignore[attr-defined]


def test_a_share_below_the_micro_batch_is_all_that_a_rank_has(load: Load) -> None:
    four = replace(GPU, each=4)
    (phase,) = make_plan(load("train.device=auto"), {}, four)["phases"]
    assert (phase["micro_batch"], phase["micro_batches"]) == (2, 1)


def test_scores_cost_a_third_of_the_training_of_their_sequences(load: Load) -> None:
    plan = make_plan(load("evaluate.max_sequences=800", "train.device=auto"), {}, GPU)
    step = plan["phases"][0]["step_seconds"]
    assert plan["hours"]["evaluate"] == pytest.approx((800 * step / 8 / 3 + 3) / 3600)


def test_micro_batch_auto_fits_the_memory_limit(load: Load) -> None:
    large = ("model.config=", "model.size=base", "train.phases.0.batch=4096", "train.phases.0.micro_batch=auto")
    found = {
        limit: make_plan(load(*large, "train.device=auto", f"train.memory_limit_gb={limit}"), {}, GPU)
        for limit in (0, 10, 20)
    }
    sizes = {limit: plan["phases"][0]["micro_batch"] for limit, plan in found.items()}
    assert 1 < sizes[10] < sizes[20] < sizes[0], "0 is the memory of the device"
    for limit, plan in found.items():
        assert plan["memory_bytes"] <= 1e9 * (limit or 80)


@each_row(("gpu", "sequences"), [(True, 4), (False, 16)])
def test_batches_are_32_bytes_a_token(gpu: bool, sequences: int, load: Load) -> None:
    """A GPU holds one micro-batch of 4; a processor the step's 8 sequences, and as many that are drawn ahead."""
    recipe = load()
    work = phase_work(recipe, 0, read_data(recipe, {}))
    assert memory_of(recipe, work, 1, gpu).batches == pytest.approx(32 * sequences * work.mean_length)
    assert memory_of(recipe, work, 1, gpu).teacher == 0


def test_weights_gradients_and_averages_are_float32(load: Load) -> None:
    plain, averaged = load("train.precision=fp32"), load("train.precision=fp32", "train.averaging=ema")
    work = phase_work(plain, 0, read_data(plain, {}))
    parameters = plain.network().parameters
    first, second = (memory_of(recipe, work, 1, True) for recipe in (plain, averaged))
    assert first.weights == 4 * parameters and first.gradients == 4 * parameters
    assert second.weights == first.weights + 4 * parameters


@each_row(("gpu", "precision", "other"), [("v100", "bf16", "fp16"), ("k80", "fp16", "fp32")])
def test_a_precision_without_a_unit_is_refused_with_one_that_has(
    gpu: str, precision: str, other: str, load: Load
) -> None:
    recipe = load("train.device=auto", f"train.precision={precision}")
    there = machine_of(HardwareConfig(gpu=gpu))
    with pytest.raises(RecipeError, match=f"train.precision={other}"):
        make_plan(recipe, {}, there)
    assert make_plan(recipe, {}, replace(there, here=True)), "`check` says it of this machine"
    cpu = make_plan(
        load("train.device=auto", "train.precision={kind='bf16', allow_slow=true}"),
        {},
        machine_of(HardwareConfig(cores=2)),
    )
    assert cpu["phases"]


@each_row(
    ("overrides", "hardware", "kernel"),
    [
        ([], HardwareConfig(), "sequences"),
        (["model.attention_dropout=0.1"], HardwareConfig(gpu="v100-16"), "padded"),
        (
            ["model.attention_dropout=0", "train.attention=varlen", "train.precision=bf16"],
            HardwareConfig(gpu="h100"),
            "varlen",
        ),
    ],
)
def test_the_attention_kernel_is_named(overrides: list[str], hardware: HardwareConfig, kernel: str) -> None:
    recipe = Recipe.load("demo", overrides)
    plan = make_plan(recipe, {}, machine_of(hardware))
    assert [phase["attention"] for phase in plan["phases"]] == [kernel] * len(recipe.train.phases)
