"""The forecast of a run: memory, disk, time, energy and money, without torch and in a fraction of a second."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict

from bertwright.core.artifact import Artifact
from bertwright.core.errors import RecipeError
from bertwright.core.stage_context import STAGE_NAMES
from bertwright.estimate.disk import disk_left, disk_of
from bertwright.estimate.expected_choices import as_expected
from bertwright.estimate.hours import PhaseTime, phase_time, score_seconds, stage_seconds
from bertwright.estimate.known_data import Data, read_data
from bertwright.estimate.machine import Machine
from bertwright.estimate.measurement_cache import Measured, key_of, read_measurement
from bertwright.estimate.memory import Memory, memory_of
from bertwright.estimate.step_time import step_time
from bertwright.estimate.work import PhaseWork, works_of
from bertwright.forecast_shapes import MachineFacts, Phase, Plan, Spent
from bertwright.plan.remedies import Needs, remedies
from bertwright.recipe import Recipe
from bertwright.train.memory.rank_memory import computing_of, expected_kernel

BAND = (0.5, 2.0)
"""Factors from the forecast hours to their bounds, if nothing was measured."""
MEASURED_BAND = (0.8, 1.3)
"""The same if every phase was measured on this machine."""


def make_plan(recipe: Recipe, made: Mapping[str, Artifact], machine: Machine) -> Plan:
    """Forecast the rest of a run on a machine; `made` has the recipe's finished artifacts, by stage.

    Raises `RecipeError` if a batch has fewer sequences than the machine has ranks, or if its GPUs do not support the
    recipe's precision.
    """
    data = read_data(recipe, made)
    expected = as_expected(recipe, data, machine)
    _refuse_impossible(expected, machine)
    works = _works(recipe, data, machine)
    measured = _measurements(expected, works, machine)
    memories = [memory_of(recipe, work, machine.ranks, machine.device.gpu) for work in works]
    steps = _step_seconds(expected, _works(expected, data, machine), machine, measured)
    times = [phase_time(recipe, work, step, data, machine.device.gpu) for work, step in zip(works, steps, strict=True)]
    training = None if None in times else sum(time.total for time in times if time)
    # The last phase's, because its length is the one that the stage evaluate scores by default.
    scoring = score_seconds(steps[-1] / works[-1].phase.batch)
    seconds = stage_seconds(recipe, data, machine, training, scoring, _done(made))
    most = max(memory.total for memory in memories)
    phases = [
        _phase(work, memory, step, time, machine, expected)
        for work, memory, step, time in zip(works, memories, steps, times, strict=True)
    ]
    return {
        "machine": _facts(machine),
        "basis": data.basis,
        "parameters": recipe.network().parameters,
        "text_bytes": data.text,
        "phases": phases,
        "memory_bytes": most,
        "fits": machine.device.fits(most),
        "remedies": remedies(recipe, machine, lambda changed: _needs(changed, data, machine)),
        "disk": disk_of(recipe, data),
        "disk_left": disk_left(recipe, data, works),
        "tokens_per_second": _throughput(phases),
        **_spent(seconds, measured, machine),
    }


def planned_works(recipe: Recipe, made: Mapping[str, Artifact], machine: Machine) -> tuple[Recipe, list[PhaseWork]]:
    """The recipe with the precision and the graph that are planned for, and the work of each phase on the machine, as
    input for measurements."""
    data = read_data(recipe, made)
    recipe = as_expected(recipe, data, machine)
    _refuse_impossible(recipe, machine)
    return recipe, _works(recipe, data, machine)


def _refuse_impossible(recipe: Recipe, machine: Machine) -> None:
    precision, device = recipe.train.precision, machine.device
    # For this machine, `check` reports an unsupported precision.
    if device.gpu and not machine.here and not device.has(precision.kind):
        other = "fp16" if "half" in device.speeds else "fp32"
        raise RecipeError(
            f"train.precision = {precision.kind}, but a {device.name} has no hardware support for it. Set "
            f"train.precision={other}."
        )
    for index, phase in enumerate(recipe.train.phases):
        if phase.batch < machine.ranks:
            raise RecipeError(
                f"{machine.ranks:,} ranks ({machine.nodes:,} machines of {machine.each:,}) cannot share "
                f"train.phases.{index}.batch = {phase.batch:,}: some ranks would have no sequences. Plan for fewer "
                "ranks, or raise the batch."
            )


def _done(made: Collection[str]) -> list[str]:
    """The stages that need not be made: finished ones, and the stages before them."""
    finished = [stage for stage in STAGE_NAMES if stage in made]
    return list(STAGE_NAMES[: STAGE_NAMES.index(finished[-1]) + 1]) if finished else []


def _spent(seconds: Mapping[str, float | None], measured: Sequence[Measured | None], machine: Machine) -> Spent:
    """Time with its bounds, energy and cost, from the seconds of each stage."""
    dates = [found.date for found in measured if found]
    known = len(dates) == len(measured)
    low, high = MEASURED_BAND if known else BAND
    # Unknown stages are left out of the total, unless training is unknown: often only the training matters.
    total = None if seconds.get("train", 0.0) is None else sum(filter(None, seconds.values())) / 3600
    spent = None if total is None else _machine_hours(seconds, machine.nodes)
    return {
        "calibrated": f"from a measurement of this machine ({min(dates)})" if known else "",
        "hours": {stage: None if value is None else value / 3600 for stage, value in seconds.items()},
        "total_hours": total,
        "low_hours": None if total is None else total * low,
        "high_hours": None if total is None else total * high,
        "energy_kwh": None if spent is None else spent * machine.watts / 1000,
        "cost": None if spent is None or not machine.price else spent * machine.price,
    }


def _machine_hours(seconds: Mapping[str, float | None], nodes: int) -> float:
    """Machine hours: all machines train, and one does everything else."""
    return sum((value or 0.0) * (nodes if stage == "train" else 1) for stage, value in seconds.items()) / 3600


def _works(recipe: Recipe, data: Data, machine: Machine) -> list[PhaseWork]:
    return works_of(recipe, data, machine.ranks, machine.device.gpu, machine.device.memory)


def _measurements(recipe: Recipe, works: Sequence[PhaseWork], machine: Machine) -> list[Measured | None]:
    """The stored measurement of each phase on this machine; None for each phase that has none."""
    # One process alone was measured: ranks that share the cores are slower.
    if not machine.here or (machine.each > 1 and not machine.device.gpu):
        return [None] * len(works)
    return [read_measurement(key_of(recipe, work, work.micro_sequences(machine.ranks))) for work in works]


def _step_seconds(
    recipe: Recipe, works: Sequence[PhaseWork], machine: Machine, measured: Sequence[Measured | None]
) -> list[float]:
    padded = computing_of(recipe.train, recipe.optim, machine.ranks, machine.device.gpu).padded
    return [
        step_time(recipe, work, machine, padded, found).seconds for work, found in zip(works, measured, strict=True)
    ]


def _needs(recipe: Recipe, data: Data, machine: Machine) -> Needs:
    works = _works(recipe, data, machine)
    memory = tuple(memory_of(recipe, work, machine.ranks, machine.device.gpu).total for work in works)
    # By the model only: nothing was measured for changed recipes, and the results are compared with each other.
    expected = as_expected(recipe, data, machine)
    steps = _step_seconds(expected, _works(expected, data, machine), machine, [None] * len(works))
    return Needs(memory, sum((work.steps or 1) * step for work, step in zip(works, steps, strict=True)))


def _phase(
    work: PhaseWork, memory: Memory, step: float, time: PhaseTime | None, machine: Machine, recipe: Recipe
) -> Phase:
    size = work.phase.micro_batching.micro_batch
    trained = 1.0 if time is None or not work.steps else time.steps / work.steps  # below 1 if `hours` ends the phase
    return {
        "steps": work.steps if time is None else time.steps,
        "sequences": None if work.sequences is None else round(work.sequences * trained),
        "tokens": None if work.tokens is None else work.tokens * trained,
        "epochs": None if work.epochs is None else work.epochs * trained,
        "micro_batch": min(size, -(-work.phase.batch // machine.ranks)),
        "micro_batches": work.micro_batches(machine.ranks),
        "attention": expected_kernel(recipe.train, machine.device.gpu),
        "precision": recipe.train.precision.kind,
        "memory": {**asdict(memory)},  # type: ignore[typeddict-item]  # its fields are the keys
        "memory_bytes": memory.total,
        "step_seconds": step,
        "tokens_per_second": work.phase.batch * work.mean_length / step,
        "hours": None if time is None else time.total / 3600,
    }


def _throughput(phases: Sequence[Phase]) -> float:
    """Tokens per second over all phases."""
    known = [(phase["tokens"], phase["tokens_per_second"]) for phase in phases if phase["tokens"]]
    seconds = sum((tokens or 0.0) / speed for tokens, speed in known)
    return sum(tokens or 0.0 for tokens, _ in known) / seconds if seconds else phases[0]["tokens_per_second"]


def _facts(machine: Machine) -> MachineFacts:
    return {
        "title": machine.title,
        "device": machine.device.name,
        "ranks": machine.ranks,
        "nodes": machine.nodes,
        "memory_bytes": machine.device.memory,
        "watts": machine.watts,
        "price": machine.price,
        "currency": machine.currency,
    }
