"""A rank's share of each step, in micro-batches of the size found at the start, or smaller.

With `micro_batch = "auto"`, `size_phases` takes the largest size that fits by the rules of `train.memory`, the smallest
over all ranks. On a CPU, running out of memory kills the process, so that size is final. A GPU reports the error
instead: the step is then trained again from its beginning in micro-batches of half the size, and so are all later
steps. The global batch, its masks and its counts do not change. The size changes the order of summation, and which
elements dropout drops, because dropout is drawn per micro-batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch

from bertwright.core.distributed import ranks_here
from bertwright.core.log import Log
from bertwright.core.numbers import size_of
from bertwright.core.resources import memory_size
from bertwright.examples.batch import MicroBatch
from bertwright.examples.example_set import StepCounts
from bertwright.examples.loader import Loader
from bertwright.model.batch import PackedBatch
from bertwright.train.memory.rank_memory import computing_of, fitting_sequences, over_limit
from bertwright.train.monitor.session_record import micro_batching_of
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.settings.phases import Phase
from bertwright.train.setup.job import TrainJob
from bertwright.train.setup.trainee import Trainee
from bertwright.train.state import State


def size_phases(job: TrainJob, state: State, device: torch.device, ranks: Ranks, log: Log) -> list[Phase]:
    """Return the phases with their micro-batch sizes resolved, the same on all ranks.

    A resumed run keeps its earlier sizes, so that it gives the same bits as one that was not stopped, or uses smaller
    ones if less memory is available.
    """
    before = state.sessions[-1].get("micro_batches", []) if state.sessions else []
    limit = job.config.memory_limit_gb * 1e9 or _device_memory(device)
    computing = computing_of(job.config, job.optim, ranks.world, device.type == "cuda")
    phases = []
    for phase, config in zip(job.phases, job.config.phases, strict=True):
        if phase.finds_micro_batch:
            each = phase.loader.examples.most_sequences
            size = min(ranks.each(fitting_sequences(job.network, config, computing, limit, each)))
            size = min(size, _found(before, phase.index) or size)
            log.say(f"train: phase {phase.index} in micro-batches of {size:,} ({size_of(limit)} for each rank)")
            phase = phase.with_micro_batch(size)
        phases.append(phase)
    for over in over_limit(job.config, job.network, computing):
        log.say(f"warning: {over.text} {over.remedy}")
    return phases


def _found(before: Sequence[Mapping[str, Any]], index: int) -> int:
    """Return the size that an earlier start found for a phase; 0 if none did."""
    recorded = before[index] if index < len(before) else {}
    return int(recorded["micro_batch"]) if recorded.get("found") else 0


def _device_memory(device: torch.device) -> float:
    """Return the bytes that a rank may use if the recipe does not say."""
    if device.type == "cuda":
        return float(torch.cuda.get_device_properties(device).total_memory)
    return memory_size() / ranks_here()


class Drawn(NamedTuple):
    """A rank's share of a step, and the loader that it came from."""

    loader: Loader
    micro_batches: list[MicroBatch]
    prepared: list[PackedBatch]
    """The micro-batches that need a forward pass, in host memory in the network's input format (`Trainee.prepare`)."""


class BatchSource:
    """Provides a rank's share of each step of a phase, in smaller micro-batches once memory has run out."""

    def __init__(self, phase: Phase, trainee: Trainee, log: Log) -> None:
        self.phase, self.ranks, self.log = phase, trainee.ranks, log
        self._to_compute, self._prepare = trainee.to_compute, trainee.prepare

    def fetch(self, step: int) -> tuple[Drawn, StepCounts]:
        """Return the rank's share of `step`, and its counts of the next step; called on another thread."""
        phase = self.phase
        return self._draw(phase, step), phase.loader.counts(step + 1, self.ranks.rank, self.ranks.world)

    def current(self, step: int, drawn: Drawn) -> Drawn:
        """Return the rank's share of `step`; draw it again if it was drawn before the micro-batches became smaller."""
        return drawn if drawn.loader is self.phase.loader else self._draw(self.phase, step)

    def can_halve(self, step: int) -> bool:
        """Whether the micro-batches of `step` can be made smaller.

        This does not help if memory runs out in the optimizer update, which is a different error.
        """
        return self.phase.finds_micro_batch and self._size(step) > 1

    def halve(self, step: int) -> None:
        """Halve the micro-batches of `step` and of all later steps of the phase, and log it."""
        before = self._size(step)
        self.phase = self.phase.with_micro_batch(before // 2)
        torch.cuda.empty_cache()  # cached blocks of the old sizes would be kept besides those of the new ones
        self.log.say(
            f"train: out of memory in step {step + 1:,} of phase {self.phase.index}, which is repeated: the "
            f"micro-batch size is reduced from {before:,} to {before // 2:,} for this and all later steps of this "
            "phase"
        )

    def record_update(self, state: State) -> State:
        """Return the state with the current size recorded, so that a resumed run uses it."""
        *earlier, last = state.sessions
        sizes, index = list(last["micro_batches"]), self.phase.index
        if sizes[index] == micro_batching_of(self.phase):
            return state
        sizes[index] = micro_batching_of(self.phase)
        return replace(state, sessions=(*earlier, {**last, "micro_batches": sizes}))

    def _draw(self, phase: Phase, step: int) -> Drawn:
        batches = phase.loader.step(step, self.ranks.rank, self.ranks.world)
        room = partial(phase.loader.room, self.ranks.world)
        prepared = [self._prepare(batch, room) for batch in self._to_compute(batches)]
        return Drawn(phase.loader, batches, prepared)

    def _size(self, step: int) -> int:
        """Return the maximum number of sequences (or rows) in a micro-batch of a step."""
        settings = self.phase.loader.settings
        share = -(-settings.batches.at(step) // self.ranks.world)
        return min(settings.micro_batching.micro_batch, share)


Fetched = TypeVar("Fetched")


def prefetch(fetch: Callable[[int], Fetched], start: int, end: int) -> Generator[tuple[Fetched, float]]:
    """Yield `(fetch(step), seconds waited for it)` for each step in [start, end), fetching one step ahead on a
    thread."""
    with ThreadPoolExecutor(1, thread_name_prefix="loader") as pool:
        ahead = pool.submit(fetch, start) if start < end else None
        for step in range(start, end):
            assert ahead is not None
            began = time.perf_counter()
            fetched = ahead.result()
            waited = time.perf_counter() - began
            ahead = pool.submit(fetch, step + 1) if step + 1 < end else None
            yield fetched, waited
