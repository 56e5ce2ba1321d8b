"""What the settings `auto` will probably choose, for forecasts: a training itself measures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertwright.estimate.known_data import Data
from bertwright.estimate.machine import Machine
from bertwright.estimate.memory import with_precision
from bertwright.estimate.step_time import micro_batch_seconds
from bertwright.estimate.work import PhaseWork, works_of
from bertwright.model.flops import step_flops
from bertwright.recipe import Recipe
from bertwright.train.graph.config import AutoGraphConfig, CompiledConfig, EagerConfig, GraphConfig
from bertwright.train.graph.packages import WORTH, graph_of
from bertwright.train.memory.rank_memory import computing_of
from bertwright.train.precision.config import AutoPrecisionConfig, Bf16Config, Fp32Config
from bertwright.train.precision.units import SHORT, SPEEDUP, of_gpu


def as_expected(recipe: Recipe, data: Data, machine: Machine) -> Recipe:
    """Return the recipe with the precision and the graph that `auto` will probably choose on the machine."""
    return _with_expected_graph(_with_expected_precision(recipe, data, machine), data, machine)


def _with_expected_graph(recipe: Recipe, data: Data, machine: Machine) -> Recipe:
    train = recipe.train
    if not isinstance(train.graph, AutoGraphConfig):
        return recipe
    graph: GraphConfig = graph_of(train, machine.device.gpu)
    works = works_of(recipe, data, machine.ranks, False, machine.device.memory)
    phases = train.phases
    if isinstance(graph, CompiledConfig) and _flops(recipe, works) < WORTH:
        graph = EagerConfig()
    if isinstance(graph, CompiledConfig):  # which packs rows
        phases = tuple(
            phase if phase.micro_tokens else phase.model_copy(update={"packing": True}) for phase in train.phases
        )
    return recipe.model_copy(update={"train": train.model_copy(update={"graph": graph, "phases": phases})})


def _with_expected_precision(recipe: Recipe, data: Data, machine: Machine) -> Recipe:
    if not isinstance(recipe.train.precision, AutoPrecisionConfig):
        return recipe
    if machine.device.gpu:
        return with_precision(recipe, of_gpu(machine.device.capability, recipe.train.engine.kind).config)
    single, half = with_precision(recipe, Fp32Config()), with_precision(recipe, Bf16Config())
    works = works_of(single, data, machine.ranks, False, machine.device.memory)
    limited = recipe.train.cpu_isa in ("avx2", "avx512") or recipe.train.graph.kind == "ortmodule"
    if limited or not machine.device.has("bf16") or _fp32_seconds(single, works, machine) < SHORT:
        return single
    return (
        half if _pass_seconds(single, works[0], machine) >= SPEEDUP * _pass_seconds(half, works[0], machine) else single
    )


def _fp32_seconds(recipe: Recipe, works: Sequence[PhaseWork], machine: Machine) -> float:
    """Return the seconds of the products of all steps in float32; infinite if the number of steps is not known."""
    seconds, device = 0.0, machine.device
    for work in works:
        one = _flops_of_sequence(recipe, work)
        needed = float("inf")
        if work.sequences is not None:
            needed = work.sequences * one / (device.speeds["fp32"] * machine.ranks)
        seconds += min(needed, 3600 * work.phase.hours) if work.phase.hours else needed
    return seconds


def _flops(recipe: Recipe, works: Sequence[PhaseWork]) -> float:
    """Return the operations of all steps; infinite if their number is not known, or for a phase of hours."""
    if any(work.sequences is None or work.phase.hours for work in works):
        return float("inf")
    return sum((work.sequences or 0) * _flops_of_sequence(recipe, work) for work in works)


def _flops_of_sequence(recipe: Recipe, work: PhaseWork) -> float:
    lengths = np.array([round(work.mean_length)])
    return float(step_flops(recipe.network(), lengths, round(work.predictions), work.only_rows))


def _pass_seconds(recipe: Recipe, work: PhaseWork, machine: Machine) -> float:
    padded = computing_of(recipe.train, recipe.optim, machine.ranks, False).padded
    return micro_batch_seconds(
        recipe.network(), recipe.train, work, machine, work.micro_sequences(machine.ranks), padded
    )
