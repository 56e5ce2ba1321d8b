"""What starting operations takes: by hand from the numbers that were measured, and by counting lengths one by one."""

import random
from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.estimate.known_data import read_data
from bertwright.estimate.step_time import distinct_lengths, pass_launch_seconds, step_launch_seconds
from bertwright.estimate.work import PhaseWork, phase_work
from bertwright.examples.sequences import Sequences

Load = Callable[..., Recipe]


@pytest.fixture
def work(load: Load) -> PhaseWork:
    recipe = load()
    return replace(phase_work(recipe, 0, read_data(recipe, {})), examples=Sequences((), 12.0, 2.0, 16))


def test_distinct_lengths_of_padded_and_packed_passes(load: Load, work: PhaseWork) -> None:
    network = load().network()
    assert network.num_hidden_layers == 1 and work.phase.length == 16
    assert pass_launch_seconds(network, work, 8, padded=True, gpu=False) == pytest.approx(0.9e-3 + 0.15e-3 + 2.5e-3)
    lengths = distinct_lengths(8, 12.0, 16)
    assert lengths > 2
    assert pass_launch_seconds(network, work, 8, padded=False, gpu=False) == pytest.approx(
        0.9e-3 + lengths * 0.15e-3 + 2.5e-3
    )


def test_each_layer_costs_its_own(load: Load, work: PhaseWork) -> None:
    one = load().network()
    four = one.model_copy(update={"num_hidden_layers": 4})
    for gpu, layer in ((False, 0.9e-3 + 0.15e-3), (True, 1e-3)):
        more = pass_launch_seconds(four, work, 8, True, gpu) - pass_launch_seconds(one, work, 8, True, gpu)
        assert more == pytest.approx(3 * layer)


def test_a_gpu_is_given_its_layers_whatever_the_lengths(load: Load, work: PhaseWork) -> None:
    network = load().network()
    found = {pass_launch_seconds(network, work, n, padded, gpu=True) for n in (1, 64) for padded in (True, False)}
    assert found == {1e-3 + 8e-3} and step_launch_seconds(network, gpu=True) == 4e-3


def test_after_the_passes_every_tensor_is_updated(load: Load) -> None:
    network = load().network()
    assert step_launch_seconds(network, gpu=False) == pytest.approx(len(network.tensors) * 20e-6 + 2e-3)


@each_row(("sequences", "mean"), [(1, 90), (8, 90), (64, 90), (64, 65), (256, 120)])
def test_lengths_are_counted_as_drawing_them_does(sequences: int, mean: int) -> None:
    """Full sequences, and all others of any length alike with the rest of the probability."""
    longest, rng = 128, random.Random(sequences)
    shorter = 2 - 2 * mean / longest

    def lengths() -> int:
        drawn = (rng.randrange(longest) if rng.random() < shorter else longest for _ in range(sequences))
        return len({longest, *drawn})

    assert distinct_lengths(sequences, mean, longest) == pytest.approx(fmean(lengths() for _ in range(400)), rel=0.05)


def test_distinct_lengths_are_at_most_the_sequences() -> None:
    assert distinct_lengths(1000, 128, 128) == 1
    assert distinct_lengths(10**6, 64, 128) == pytest.approx(129)
