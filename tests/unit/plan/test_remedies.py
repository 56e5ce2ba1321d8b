"""Which changes are offered for a training that does not fit, and in which order.

What a recipe needs is invented here: each test says which keys help, and by how much.
"""

from collections.abc import Callable
from typing import Any

import pytest

from bertwright import Recipe
from bertwright.estimate.machine import HardwareConfig, Machine, machine_of
from bertwright.plan.remedies import Needs, remedies, with_keys

Load = Callable[..., Recipe]
Needed = Callable[[Recipe], float]
CHECKPOINT = "train.checkpoint_activations=true"
HALF = 'train.precision={kind="bf16", weights="bf16"}'
GPU = machine_of(HardwareConfig(gpu="h100", memory_gb=10))


def found(recipe: Recipe, machine: Machine, *gigabytes: Needed, seconds: Needed = lambda recipe: 4.0) -> list[Any]:
    """The remedies if the phases need that many gigabytes; the device has 10."""

    def needs(changed: Recipe) -> Needs:
        return Needs(tuple(1e9 * each(changed) for each in gigabytes), seconds(changed))

    return remedies(recipe, machine, needs)


def keys(offered: list[Any]) -> list[list[str]]:
    return [remedy["keys"] for remedy in offered]


@pytest.fixture
def recipe(load: Load) -> Recipe:
    return load("train.phases.0.micro_batch=8", "train.device=auto")


def test_no_remedies_if_it_fits_or_nothing_helps(recipe: Recipe) -> None:
    assert found(recipe, GPU, lambda changed: 10.0) == []
    assert found(recipe, GPU, lambda changed: 11.0) == []


def test_the_largest_power_of_two_that_fits_is_the_first_remedy(recipe: Recipe) -> None:
    """Two gigabytes for each sequence: five fit, and four is the power of two below. It alone is enough, so it is
    combined with no other key."""

    def needed(changed: Recipe) -> float:
        return 2.0 * int(changed.train.phases[0].micro_batch)

    (only,) = found(recipe, GPU, needed, seconds=lambda changed: 32.0 / int(changed.train.phases[0].micro_batch))
    assert only == {"keys": ["train.phases.0.micro_batch=4"], "memory_bytes": 8e9, "times_as_long": 2.0}


def test_a_helpful_key_is_listed_beside_smaller_batches(recipe: Recipe) -> None:
    def needed(changed: Recipe) -> float:
        return 1.0 if changed.train.checkpoint_activations else 2.0 * int(changed.train.phases[0].micro_batch)

    assert keys(found(recipe, GPU, needed)) == [["train.phases.0.micro_batch=4"], [CHECKPOINT]]


def test_a_key_that_needs_smaller_batches_lists_them(recipe: Recipe) -> None:
    def needed(changed: Recipe) -> float:
        fixed = 3.0 if changed.train.checkpoint_activations else 20.0
        return fixed + 2.0 * int(changed.train.phases[0].micro_batch)

    assert keys(found(recipe, GPU, needed)) == [[CHECKPOINT, "train.phases.0.micro_batch=2"]]


def test_only_phases_that_do_not_fit_get_smaller_micro_batches(load: Load) -> None:
    phase = "{length=16, batch=8, learning_rate=1e-3, steps=3, micro_batch=8}"
    recipe = load(f"train.phases=[{phase}, {phase}]", "train.device=auto")

    def second(changed: Recipe) -> float:
        return 2.0 * int(changed.train.phases[1].micro_batch)

    assert keys(found(recipe, GPU, lambda changed: 9.0, second)) == [["train.phases.1.micro_batch=4"]]
    assert found(recipe, GPU, lambda changed: 11.0, second) == [], "both have to fit"


def test_tokens_of_a_pass_give_way_to_a_micro_batch(load: Load) -> None:
    recipe = load("train.phases.0.micro_batch=", "train.phases.0.micro_tokens=128", "train.device=auto")

    def needed(changed: Recipe) -> float:
        return 5.0 * int(changed.train.phases[0].micro_batch) if not changed.train.phases[0].micro_tokens else 40.0

    assert keys(found(recipe, GPU, needed)) == [["train.phases.0.micro_tokens=0", "train.phases.0.micro_batch=2"]]


def test_engines_that_share_are_offered_where_there_are_ranks(recipe: Recipe) -> None:
    def needed(changed: Recipe) -> float:
        return {"zero": 9.0, "fsdp": 5.0}.get(changed.train.engine.kind, 20.0)

    assert found(recipe, GPU, needed) == []
    two = machine_of(HardwareConfig(gpu="h100", memory_gb=10, gpus=2))
    assert keys(found(recipe, two, needed)) == [["train.engine=zero"], ["train.engine=fsdp"]]


def test_bf16_weights_are_offered_if_supported(load: Load, recipe: Recipe) -> None:
    def needed(changed: Recipe) -> float:
        return 5.0 if getattr(changed.train.precision, "weights", "") == "bf16" else 20.0

    assert keys(found(recipe, GPU, needed)) == [[HALF]]
    v100 = machine_of(HardwareConfig(gpu="v100", memory_gb=10))
    assert found(recipe, v100, needed) == []
    assert found(load("train.precision=fp16", "train.device=auto"), GPU, needed) == [], "chosen for its own reasons"


def test_several_keys_come_only_where_no_single_one_is_enough(recipe: Recipe) -> None:
    def needed(changed: Recipe) -> float:
        half = getattr(changed.train.precision, "weights", "") == "bf16"
        return 20.0 - 6 * half - 6 * changed.train.checkpoint_activations

    assert keys(found(recipe, GPU, needed)) == [[CHECKPOINT, HALF]]


def test_the_only_key_that_helps_is_offered_once(load: Load) -> None:
    """A single process of fp16 has no other key to combine it with."""
    recipe = load("train.precision=fp16", "train.phases.0.micro_batch=8", "train.device=auto")

    def needed(changed: Recipe) -> float:
        return 5.0 if changed.train.checkpoint_activations else 2.0 * int(changed.train.phases[0].micro_batch)

    assert keys(found(recipe, GPU, needed)) == [["train.phases.0.micro_batch=4"], [CHECKPOINT]]


def test_the_largest_fitting_network_is_the_last_remedy(load: Load) -> None:
    recipe = load("model.config=", "model.size=large", "train.device=auto")

    def needed(changed: Recipe) -> float:
        return {"medium": 12.0, "small": 9.0, "mini": 5.0}.get(getattr(changed.model, "size", ""), 40.0)

    assert keys(found(recipe, GPU, needed)) == [["model.size=small"]]


def test_a_change_that_the_recipe_would_be_refused_with_is_none(recipe: Recipe) -> None:
    assert with_keys(recipe, ("train.phases.0.micro_batch=9",)) is None, "the batch is 8"
    assert with_keys(recipe, ("train.engine=fsdp", "train.averaging=ema")) is None, "they contradict each other"
    changed = with_keys(recipe, ("train.phases.0.micro_batch=2",))
    assert changed and changed.train.phases[0].micro_batch == 2 and recipe.train.phases[0].micro_batch == 8
