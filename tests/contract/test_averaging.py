"""Every kind of weight average: its state is saved by name, loaded bit for bit, rejected if wrong, and never changes
the trained weights."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pydantic import TypeAdapter
from safetensors.torch import load, save
from tests.reference.unions import sections_of

from bertwright.core.errors import CheckpointError
from bertwright.train.averaging.averaging import Averaging, build_averaging
from bertwright.train.averaging.config import AveragingConfig

CONFIGS = {config.model_fields["kind"].default: config for config in sections_of(AveragingConfig)}
KEYS: dict[str, dict[str, Any]] = {"last": {"every": 2, "count": 3}, "ema": {"decay": 0.4, "start": 0.2}}
"""Settings where the defaults suit only longer trainings."""
STEPS = 20
Weights = dict[str, torch.Tensor]


def built(kind: str) -> Averaging | None:
    phase: Any = SimpleNamespace(schedule_steps=STEPS, steps=STEPS)
    return build_averaging(CONFIGS[kind](**KEYS.get(kind, {})), [phase])


def at(step: int) -> Weights:
    """The weights after a step; step 7 changed nothing."""
    generator = torch.Generator().manual_seed(6 if step == 7 else step)
    return {"a.weight": torch.randn(4, 3, generator=generator), "a.bias": torch.randn(4, generator=generator)}


def follow(averaging: Averaging, steps: range) -> None:
    for step in steps:
        averaging.after(at(step), step, step != 7)


def same(one: Weights, other: Weights) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


AVERAGES = [kind for kind in CONFIGS if built(kind)]


def test_none_is_one_of_them_and_keeps_nothing() -> None:
    assert set(CONFIGS) - set(AVERAGES) == {"none"}


@pytest.mark.parametrize("kind", CONFIGS)
def test_its_name_is_short_for_its_section(kind: str) -> None:
    assert TypeAdapter(AveragingConfig).validate_python(kind) == CONFIGS[kind]()


@pytest.mark.parametrize("kind", AVERAGES)
@pytest.mark.parametrize("stop", [1, 3, 4, 7, 12])
def test_saved_anywhere_and_loaded_it_goes_on_to_the_bit(kind: str, stop: int) -> None:
    whole, first, second = built(kind), built(kind), built(kind)
    assert whole and first and second
    follow(whole, range(1, STEPS + 1))
    follow(first, range(1, stop + 1))
    second.load(load(save(first.state())), at(0))
    follow(second, range(stop + 1, STEPS + 1))
    assert whole.average() and same(whole.average(), second.average()) and same(whole.state(), second.state())


@pytest.mark.parametrize("kind", AVERAGES)
def test_it_is_a_copy_of_the_networks_shapes_and_types(kind: str) -> None:
    averaging = built(kind)
    assert averaging
    weights = {name: tensor.clone() for name, tensor in at(1).items()}
    for step in range(1, STEPS + 1):
        averaging.after(weights, step, True)
    average = averaging.average()
    assert same(weights, at(1)), "the weights were moved"
    for name in weights:
        assert average[name].dtype == weights[name].dtype and average[name].shape == weights[name].shape
        torch.testing.assert_close(average[name], weights[name])
        weights[name].zero_()
    assert not same(average, weights), "it is no copy"


@pytest.mark.parametrize("kind", AVERAGES)
def test_the_state_of_another_network_is_refused_by_name(kind: str) -> None:
    averaging = built(kind)
    assert averaging
    follow(averaging, range(1, STEPS + 1))
    state = dict(averaging.state())
    with pytest.raises(
        CheckpointError, match=r"belongs to another network: a.bias is \[4\] there and \[5\] here. Restore"
    ):
        averaging.load(state, at(0) | {"a.bias": torch.zeros(5)})
    lost = next(name for name in state if name.endswith("a.weight"))
    with pytest.raises(CheckpointError, match=r"to another network: a.weight is absent there and \[4, 3\] here"):
        averaging.load({name: tensor for name, tensor in state.items() if name != lost}, at(0))
    with pytest.raises(CheckpointError, match=r"stray"):
        averaging.load(state | {"stray": torch.zeros(1)}, at(0))
