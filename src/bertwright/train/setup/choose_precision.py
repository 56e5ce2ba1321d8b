"""Resolves `train.precision = auto` at a start of training, the same on all ranks.

On a GPU its units decide. On a CPU with units for bfloat16, a forward and backward pass of the training itself is timed
in both precisions, in a process for each (`time_passes`): how much faster bfloat16 is depends on the network, the batch
and the processor. The outcome may differ from one measurement to the next, so a resumed run keeps that of its first
start. Trainings of a few minutes are not timed, by a rule that gives the same answer at every start.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter

from bertwright.core.child_process import answering_child
from bertwright.core.errors import BertwrightError, RecipeError
from bertwright.core.log import Log
from bertwright.core.numbers import step_duration
from bertwright.core.resources import processor_flags
from bertwright.core.subprocess_group import PYTHON
from bertwright.examples.batch import MicroBatch, split
from bertwright.train.checkpoints.checkpoint import newest_state
from bertwright.train.config import TrainConfig
from bertwright.train.graph.config import EagerConfig
from bertwright.train.precision.config import Bf16Config, Fp32Config, PrecisionConfig
from bertwright.train.precision.precision import has_bf16, units_for
from bertwright.train.precision.units import SHORT, SPEEDUP, Units, core_speed, of_gpu, refusal
from bertwright.train.ranks.agreement import text_of
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.settings.phases import Phase
from bertwright.train.setup.job import TrainJob
from bertwright.train.state import State
from bertwright.transfer.parts import CHECKPOINTS

_SECONDS = 4.0
"""Seconds of timed passes, in both precisions together."""
_BLOCKS = 2
"""Minimum number of times that each precision is timed, however long its passes take."""
_PASS = 2.0
"""Seconds of products in float32, at the speed of the table, above which a shorter micro-batch is timed."""


@dataclass(frozen=True)
class _Resolved:
    config: PrecisionConfig
    reason: str
    speedup: float | None = None
    """How many times as fast as in fp32 a pass is in bf16; None if it was not timed."""
    said: bool = True
    """Whether the log says it."""
    kept: bool = False
    """Whether it is that of the last start."""

    @property
    def message(self) -> str:
        kind = self.config.kind
        if self.speedup is None:
            return f"precision {kind}, {self.reason}" if self.kept else f"precision {kind}: {self.reason}"
        other = "(train.precision=fp32 for float32)" if kind == "bf16" else "(train.precision=bf16 for bfloat16)"
        return f"precision {kind}: {self.reason} {other}"


def resolve_precision(job: TrainJob, device: torch.device, ranks: Ranks, log: Log) -> TrainJob:
    """Return the job with a precision in place of `auto`, and log which and why. All ranks must call this together.

    A resumed run keeps the precision of its last start if that was on the same kind of device; raises `RecipeError` if
    this processor or GPU has no units for that.
    """
    units, text = _common_units(job.config, device, ranks), ""
    if ranks.first:
        with ranks.busy():
            resolved = _resolve(job, units, ranks.world)
        if resolved.said:
            log.say(f"train: {resolved.message}")
        text = json.dumps({**vars(resolved), "config": resolved.config.model_dump(mode="json")})
    values = json.loads(text_of(ranks, text))
    resolved = _Resolved(**{**values, "config": _PRECISION.validate_python(values["config"])})
    if resolved.kept and isinstance(resolved.config, Bf16Config) and (refused := refusal(resolved.config, units)):
        raise RecipeError(
            "the last start of this run computed in bf16, which train.precision = auto keeps, but "
            f"{refused.reason}. Resume where there is such a unit, or set train.precision=fp32: training then goes on "
            "from the same checkpoint in float32, with other bits than if it had not been stopped."
        )
    measured = {} if resolved.speedup is None else {"bf16_speedup": round(resolved.speedup, 3)}
    return replace(
        job,
        config=job.config.model_copy(update={"precision": resolved.config}),
        choices={**job.choices, "precision_reason": resolved.reason, **measured},
    )


_PRECISION = TypeAdapter[PrecisionConfig](PrecisionConfig)


def _common_units(config: TrainConfig, device: torch.device, ranks: Ranks) -> Units:
    """Return the units that the devices of all ranks have, and that the recipe lets them use."""
    if device.type == "cpu":
        # torch reports what the processor has, whatever the limit. The torch of ONNX Runtime cannot report it.
        unused = config.cpu_isa in ("avx2", "avx512") or config.graph.kind == "ortmodule"
        return Units(bf16=not ranks.any(unused or not has_bf16()))
    capability = units_for(Bf16Config(), device).capability
    each = ranks.each(100 * capability[0] + capability[1] if capability else 0)
    lowest = min((number for number in each if number), default=0)
    return Units(gpu=True, capability=divmod(lowest, 100) if lowest else None)


def _resolve(job: TrainJob, units: Units, world: int) -> _Resolved:
    state, config = newest_state(job.out / CHECKPOINTS) or State(), job.config
    if config.graph.kind == "ortmodule":
        return _Resolved(Fp32Config(), "ONNX Runtime computes in float32", said=False)
    if state.sessions and (kept := _kept(state.sessions[-1], units.gpu)):
        return kept
    if units.gpu:
        return _Resolved(*of_gpu(units.capability, config.engine.kind))
    if not units.bf16:
        return _Resolved(Fp32Config(), "no units for bfloat16", said=False)
    if _remaining_seconds(job, state, world) < SHORT:
        return _Resolved(Fp32Config(), "training is too short for bf16 to be timed", said=False)
    try:
        full, low = _time(job, state, world)
    except (BertwrightError, OSError, ValueError) as error:
        return _Resolved(Fp32Config(), f"bf16 could not be timed ({error})")
    return choose(full, low)


def _kept(last: Mapping[str, Any], gpu: bool) -> _Resolved | None:
    """Return the precision of the last start, unless that was on another kind of device, whose bits differ anyway."""
    if last["device"].startswith("cpu") == gpu or "precision" not in last:
        return None
    weights = {"weights": last["weights"]} if last["precision"] == "bf16" and "weights" in last else {}
    config = _PRECISION.validate_python({"kind": last["precision"], **weights})
    return _Resolved(config, "as at the last start", kept=True)


def choose(full: float, low: float) -> _Resolved:
    """Return fp32 or bf16, given the seconds of a pass in each."""
    config = Bf16Config() if full >= SPEEDUP * low else Fp32Config()
    first, other, second = (low, "fp32", full) if isinstance(config, Bf16Config) else (full, "bf16", low)
    reason = f"a pass takes {step_duration(first)}, in {other} {step_duration(second)}"
    return _Resolved(config, reason, full / low)


def _remaining_seconds(job: TrainJob, state: State, world: int) -> float:
    """Return the seconds that the products of the remaining steps take in float32 at the speed of the table, which is
    the same at every start; of a phase with `hours`, at most these."""
    seconds, speed = 0.0, _speed(job.config) * world
    for phase in job.phases[state.phase :]:
        needed = job.flops_of(phase, state.data_step if phase.index == state.phase else 0) / speed
        seconds += min(needed, phase.budget or needed)
    return seconds


def _speed(config: TrainConfig) -> float:
    """Return the operations per second of float32 products on this rank, by the table."""
    return (int(config.threads) if config.threads not in (0, "auto") else torch.get_num_threads()) * core_speed(
        processor_flags()
    )


def _time(job: TrainJob, state: State, world: int) -> tuple[float, float]:
    """Return the fewest seconds of a forward and backward pass over the current phase's next micro-batch, or its
    beginning, in fp32 and in bf16."""
    phase = job.phases[min(state.phase, len(job.phases) - 1)]
    batch = _to_time(job, phase, state.data_step, world)
    taken: tuple[list[float], list[float]] = ([], [])
    with ExitStack() as stack:
        asks: list[Callable[[bytes], bytes]] = []
        for config in (Fp32Config(), Bf16Config()):
            command = [*PYTHON, "-m", "bertwright.train.setup.time_passes"]
            asks.append(stack.enter_context(answering_child(command, f"the timing in {config.kind}")))
            asks[-1](json.dumps(_request(job, config, batch)).encode())  # returns after a first pass, which warms up
        # In turn, so that both meet the same load of the machine.
        while len(taken[0]) < _BLOCKS or sum(map(sum, taken)) < _SECONDS:
            for ask, seconds in zip(asks, taken, strict=True):
                seconds += json.loads(ask(b""))
    # The fastest, because disturbances only make a pass slower.
    return min(taken[0]), min(taken[1])


def _to_time(job: TrainJob, phase: Phase, step: int, world: int) -> MicroBatch:
    batch = phase.loader.step(min(step, phase.steps - 1), 0, world)[0]
    if phase.loader.examples.most_sequences > 1:  # the sequences of an example belong together
        return batch
    rows = np.diff(np.searchsorted(batch.cu_seqlens, batch.cu_rows))
    most = max(1, int(len(rows) * _PASS * _speed(job.config) / max(job.flops_of_batch(batch), 1.0)))
    return split(batch, [rows[:most]])[0]


def _request(job: TrainJob, precision: PrecisionConfig, batch: MicroBatch) -> dict[str, Any]:
    """Return what `time_passes` reads. Graphs are timed as written: how much bfloat16 gains is nearly the same."""
    train = job.config.model_copy(update={"precision": precision, "graph": EagerConfig(), "device": "cpu"})
    arrays = {field.name: getattr(batch, field.name) for field in fields(batch) if field.name != "max_row"}
    return {
        "train": train.model_dump(mode="json", exclude_none=True),
        "family": job.network.family,
        "network": job.network.model_dump(mode="json"),
        "pair_task": job.pair_task,
        "max_row": batch.max_row,
        "arrays": {name: [str(array.dtype), array.tolist()] for name, array in arrays.items()},
    }
