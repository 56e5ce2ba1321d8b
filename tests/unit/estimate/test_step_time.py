"""The parts of a step's time: each by hand from sizes and speeds, one at a time."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.estimate.devices import Device
from bertwright.estimate.machine import Machine
from bertwright.estimate.measurement_cache import Measured
from bertwright.estimate.step_time import (
    StepTime,
    all_reduce_seconds,
    micro_batch_seconds,
    reduction_seconds,
    row_parameters,
    step_time,
    straggler_share,
)
from bertwright.estimate.work import PhaseWork
from bertwright.examples.sequences import Sequences
from bertwright.model.flops import forward_flops, step_flops

Load = Callable[..., Recipe]
GPU = Device("gpu", 80e9, {"fp32": 1e12, "half": 4e12}, {"fp32": 1.0, "half": 0.5}, 1e9, 2e9, 100.0)
CPU = replace(GPU, name="cpu")


@pytest.fixture
def load(small_recipe: Path) -> Load:
    """The small recipe in float32, with overrides."""
    return lambda *overrides: Recipe.load(small_recipe, ["train.precision=fp32", *overrides])


def machine(device: Device = GPU, each: int = 1, nodes: int = 1, cores: int = 4, **changes: Any) -> Machine:
    return Machine("", replace(device, **changes), each, nodes, cores, 1e9, 0.0)


def work(recipe: Recipe, mean: float = 12.0, deviation: float = 0.0) -> PhaseWork:
    """Sequences of 12 tokens, all alike; the small recipe has 8 to a step, in micro-batches of 4."""
    return PhaseWork(0, recipe.train.phases[0], 3, 24, Sequences((), mean, deviation, 16))


def passes(recipe: Recipe, device: Device, padded: bool = False, **keys: Any) -> float:
    return micro_batch_seconds(recipe.network(), recipe.train, work(recipe, **keys), machine(device), 4.0, padded)


def test_step_time_combines_compute_loader_and_wait() -> None:
    step = StepTime(compute=3.0, update=0.5, reduction=9.0, exposed=0.25, loader=1.0, wait=0.1)
    assert step.seconds == pytest.approx(3.75 * 1.1)
    assert replace(step, loader=5.0).seconds == pytest.approx(5.0 * 1.1)


def test_products_run_at_the_speed_of_the_precision(load: Load) -> None:
    """A training pass is three forward passes; recomputing activations makes it four."""
    recipe = load()
    one = forward_flops(recipe.network(), np.array([12]), 2 * round(work(recipe).predictions) / 2)
    device = replace(GPU, bandwidth=1e30, speeds={"fp32": 1.0, "half": 1.0})
    assert passes(recipe, device) == pytest.approx(3 * 4 * one)
    assert passes(load("train.precision=fp16"), device) == pytest.approx(3 * 4 * one / 0.5)
    assert passes(load("train.checkpoint_activations=true"), device) == pytest.approx(4 * 4 * one)


def test_mean_and_deviation_stand_for_two_lengths(load: Load) -> None:
    """Attention grows with the square of the length, so 8 and 16 tokens take more than 12 and 12."""
    recipe = load()
    device = replace(GPU, bandwidth=1e30, speeds={"fp32": 1.0})
    predictions = round(work(recipe).predictions)
    both = forward_flops(recipe.network(), np.array([8, 16]), 2 * predictions)
    assert passes(recipe, device, deviation=4.0) == pytest.approx(3 * 2 * both)
    assert passes(recipe, device, deviation=4.0) > passes(recipe, device)


def test_a_padded_batch_multiplies_the_pairs_of_the_rectangle(load: Load) -> None:
    """Attention of one layer: scores and weighted values, two products of 2 operations for each pair and number."""
    recipe = load()
    device = replace(GPU, bandwidth=1e30, speeds={"fp32": 1.0})
    hidden = recipe.network().hidden_size
    more = passes(recipe, device, padded=True, deviation=4.0) - passes(recipe, device, deviation=4.0)
    assert more == pytest.approx(3 * 4 * 4 * hidden * (16**2 - 12**2 - 4**2))
    assert passes(recipe, device, padded=True) == passes(recipe, device), "sequences that are all alike"


def test_packed_rows_compute_no_padding(load: Load) -> None:
    packed = "train.phases.0.packing=true"
    device = replace(GPU, bandwidth=1e30, speeds={"fp32": 1.0})
    assert passes(load(packed, "train.graph=compiled"), device) == passes(load(packed), device)


def test_a_graph_of_fixed_shapes_computes_full_lengths(load: Load) -> None:
    eager, compiled = load(), load("train.graph=compiled")
    device = replace(GPU, bandwidth=1e30, speeds={"fp32": 1.0})
    assert passes(compiled, device) == pytest.approx(passes(eager, device, mean=16.0), rel=0.03)
    assert passes(compiled, device, padded=True) == passes(compiled, device)


def moved(recipe: Recipe, device: Device, **keys: Any) -> float:
    """Bytes that a pass moves: at 1 byte a second, of which 0.8 are reached, and with products that take no time."""
    return 0.8 * passes(recipe, replace(device, bandwidth=1.0, speeds={"fp32": 1e30, "half": 1e30}), **keys)


def test_what_is_kept_for_the_backward_pass_is_moved_several_times(load: Load) -> None:
    """Four times by a processor, and by a GPU 7.4 times, as measured.

    Kept per token of a BERT layer without dropout: twice the inner and 9 times the hidden width, and for each
    prediction two rows of logits. Weights are moved, too, on a processor: 24 bytes for each parameter."""
    recipe = load("model.dropout=0", "model.attention_dropout=0")
    network = recipe.network()
    kept = (2 * 16 + 9 * 8) * 12 + 2 * work(recipe).predictions * network.vocab_size
    assert moved(recipe, GPU) == pytest.approx(7.4 * 4 * 4 * kept)
    assert moved(recipe, CPU) == pytest.approx(4 * 4 * 4 * kept + 24 * network.parameters, rel=1e-3)
    half = load("model.dropout=0", "model.attention_dropout=0", "train.precision=fp16")
    assert moved(half, GPU) == pytest.approx(moved(recipe, GPU) / 2)
    again = load("model.dropout=0", "model.attention_dropout=0", "train.checkpoint_activations=true")
    assert moved(again, GPU) == pytest.approx(moved(recipe, GPU) * 4 / 3)


def test_a_processor_keeps_float32_but_of_weights_in_bfloat16(load: Load) -> None:
    """Under autocast most tensors that are kept are float32 there."""
    keys = ("model.dropout=0", "model.attention_dropout=0")
    single, mixed = load(*keys), load(*keys, "train.precision={kind='bf16', allow_slow=true}")
    low = load(*keys, "train.precision={kind='bf16', weights='bf16', allow_slow=true}")
    weights = 24 * single.network().parameters
    assert moved(mixed, CPU) == pytest.approx(moved(single, CPU))
    assert moved(low, CPU) - weights == pytest.approx((moved(single, CPU) - weights) / 2, rel=1e-3)


def test_only_a_gpu_hides_launches_behind_work(load: Load) -> None:
    recipe = load()
    fast = {"bandwidth": 1e30, "speeds": {"fp32": 1e30}}
    assert passes(recipe, replace(GPU, **fast)) == pytest.approx(9e-3)
    assert passes(load("train.graph=compiled"), replace(GPU, **fast)) == pytest.approx(0.3 * 9e-3)
    slow = {"bandwidth": 1e30, "speeds": {"fp32": 1e3}}
    gpu, cpu = (passes(recipe, replace(device, **slow)) for device in (GPU, CPU))
    assert cpu - gpu == pytest.approx(passes(recipe, replace(CPU, **fast)), rel=1e-2)


def test_the_update_moves_the_ranks_share_of_the_state(load: Load) -> None:
    """44 bytes for each parameter at 0.8 of the bandwidth, and 4 ms to start it."""
    recipe, shared = load(), load("train.engine=zero")
    whole = 44 * recipe.network().parameters / (0.8 * 1e9)
    both = machine(each=2)
    for given, there, parts in ((recipe, machine(), 1), (recipe, both, 1), (shared, both, 2), (shared, machine(), 1)):
        found = step_time(given, work(given), there, False)
        assert found.update == pytest.approx(whole / parts + 4e-3)
    for engine in ("fsdp", "deepspeed"):
        given = load(f"train.engine={engine}")
        assert step_time(given, work(given), both, False).update == pytest.approx(whole / 2 + 4e-3)


def test_where_only_new_rows_are_trained_no_others_get_gradients_and_updates(load: Load) -> None:
    """16 of the 24 bytes that a pass moves for a parameter are of its gradient, and an update moves 44."""
    recipe, two = load("model.dropout=0.0"), machine(CPU, each=2)
    network, full = recipe.network(), work(recipe)
    rows = replace(full, phase=full.phase.model_copy(update={"trains": "new-rows"}))
    new = network.vocab_size * (network.hidden_size + 1)
    assert row_parameters(network) == new
    only, whole = (
        step_flops(network, np.array([12, 12]), 2 * round(full.predictions), each) / 2 for each in (True, False)
    )
    fast = replace(CPU, bandwidth=1e30)
    there = machine(fast)
    pair = [micro_batch_seconds(network, recipe.train, each, there, 4.0, False) for each in (full, rows)]
    assert pair[0] - pair[1] == pytest.approx(4 * (whole - only) / fast.speed("fp32"))
    slow = machine(replace(CPU, speeds=dict.fromkeys(CPU.speeds, 1e30)))
    pair = [micro_batch_seconds(network, recipe.train, each, slow, 4.0, False) for each in (full, rows)]
    assert pair[0] - pair[1] == pytest.approx(16 * (network.parameters - new) / (0.8 * slow.device.bandwidth))
    assert step_time(recipe, rows, slow, False).update == pytest.approx(44 * new / (0.8 * 1e9) + 2 * 20e-6 + 2e-3)
    assert step_time(recipe, rows, two, False).reduction == reduction_seconds(new, recipe.train, two)
    sharded = load("train.engine=fsdp", "model.dropout=0.0")
    assert step_time(sharded, rows, two, False).compute == step_time(sharded, full, two, False).compute


def test_a_measurement_replaces_passes_and_update(load: Load) -> None:
    recipe = load()
    found = step_time(recipe, work(recipe), machine(), False, Measured(2.0, 0.5, ""))
    assert (found.compute, found.update) == (4.0, 0.5), "two micro-batches"
    ranks = step_time(recipe, work(recipe), machine(each=2), False, Measured(2.0, 0.5, ""))
    assert ranks.compute == 2.0 and ranks.wait == straggler_share(2)


@each_row(("each", "cores", "speed"), [(1, 4, 2), (1, 1, 1), (2, 4, 1), (2, 16, 4)])
def test_a_rank_draws_its_sequences_with_half_of_its_cores(each: int, cores: int, speed: float, load: Load) -> None:
    """60,000 sequences of 128 tokens a second on a core; the small recipe has 8 of 16 in a step."""
    recipe = load()
    found = step_time(recipe, work(recipe), machine(each=each, cores=cores), False)
    assert found.loader == pytest.approx(8 / each * 16 / 128 / 60_000 / speed)


@each_row(
    ("engine", "factor"),
    [
        ("auto", 4),
        ("zero", 4),
        ("{kind='ddp', reduction='bf16'}", 2),
        ("{kind='zero', reduction='fp16'}", 2),
        ("fsdp", 6),  # gathers the weights, too
    ],
)
def test_gradients_are_summed_in_the_format_of_the_engine(engine: str, factor: float, load: Load) -> None:
    recipe = load(f"train.engine={engine}")
    parameters = 10**8
    there = machine(each=2, nodes=3)
    found = reduction_seconds(parameters, recipe.train, there)
    assert found == pytest.approx(all_reduce_seconds(factor * parameters, 2, 3, 2e9, 1e9))
    assert reduction_seconds(parameters, recipe.train, machine()) == 0


def test_small_messages_take_their_latency() -> None:
    """15 microseconds there and back, for each doubling of the ranks; of larger ones the buckets overlap."""
    assert all_reduce_seconds(0, 4, 2, 1e9, 1e9) == pytest.approx(2 * 15e-6 * 3)
    size = 9 * 25e6
    alone = 2 * 7 / 8 * size / (0.8 * 1e15)
    assert all_reduce_seconds(size, 8, 1, 1e15, 1.0) - alone == pytest.approx(2 * 15e-6 * 3 * math.sqrt(9))
