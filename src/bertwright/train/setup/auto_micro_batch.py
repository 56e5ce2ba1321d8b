"""Finds the micro-batch size at the start of training if the recipe leaves it open (`micro_batch = "auto"`).

It is the largest size that fits by the rules of `train.sizes`, taking the smallest over all ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from bertwright.core.distributed import ranks_here
from bertwright.core.log import Log
from bertwright.core.numbers import size_of
from bertwright.core.resources import memory_size
from bertwright.train.memory.rank_memory import computing_of, fitting_sequences, over_limit
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.settings.phases import Phase
from bertwright.train.setup.job import TrainJob
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
            size = min(ranks.each(fitting_sequences(job.network, config, computing, limit)))
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
