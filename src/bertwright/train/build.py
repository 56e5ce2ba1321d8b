"""What is trained, from the job: network, optimizer, engine and objective, and the state to go on from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from bertwright.core.log import Log
from bertwright.objectives.objective import build_objective
from bertwright.train.averaging.averaging import Averaging, build_averaging
from bertwright.train.engine.ds_config import step_of
from bertwright.train.engine.engine import build_engine
from bertwright.train.facts import session_facts
from bertwright.train.job import Job
from bertwright.train.meter import Meter, build_meter
from bertwright.train.network import build_network
from bertwright.train.phases import Phase
from bertwright.train.precision.loss_scale import scale_from
from bertwright.train.precision.precision import build_precision
from bertwright.train.ranks import Ranks
from bertwright.train.resume import check_phase_lengths, where_to_start
from bertwright.train.start import is_deterministic, training_device, training_kernel
from bertwright.train.state import State
from bertwright.train.step import Trained
from bertwright.train.waiting import threads_for


@dataclass(frozen=True)
class Built:
    """What a start trains."""

    trained: Trained
    averaging: Averaging | None
    """The average of the weights, where one is kept."""
    phases: list[Phase]
    """Those of the job, with the sizes of their micro-batches."""
    meter: Meter
    """What is said of computing and memory."""
    state: State
    """Where training goes on from, with the facts of this start."""


def build(job: Job, ranks: Ranks, log: Log) -> Built:
    """All that a start trains, with weights, moments and average of the newest checkpoint where there is one."""
    device = training_device(job.config.device)
    precision = build_precision(job.config.precision, device)
    kernel = training_kernel(job.config, job.network, precision)
    model, low, exported = build_network(job.network, job.config, precision, kernel)
    numbers = f"{job.network.parameters:,} parameters in {precision.config.kind}, {job.config.graph.kind}"
    log.say(f"train: {numbers} on {device}, attention kernel {kernel}")
    if not is_deterministic(job.config):
        log.say("train: not deterministic: another run has other bits. train.deterministic=true gives the same again")
    averaging = build_averaging(job.config.averaging, job.phases)
    start = where_to_start(job, model, averaging, ranks, log)
    # From the weights to begin with, whole on every rank: an engine may hold them in parts from then on.
    engine = build_engine(job.config.engine, model, job.optim, ranks, step_of(job.config))
    engine.load(start.moments)
    objective = build_objective(job.config.objective, low.network if low else model, job.pair_task)
    trained = Trained(model, objective, engine, ranks, precision, low, job.config.graph, exported)
    state = check_phase_lengths(start.state, job.phases)
    if threads := threads_for(job.config, state.sessions):
        # Each rank measures what is free; what the run goes on with is one number for all.
        torch.set_num_threads(min(ranks.each(threads)))
    phases = job.phases
    if any(phase.finds_micro_batch for phase in phases):
        from bertwright.train.found_size import cut_phases

        phases = cut_phases(job, state, device, ranks, log)
    facts = session_facts(state, device, kernel, ranks, job.config, phases)
    state = replace(state, scale=scale_from(precision.config, state.scale), sessions=(*state.sessions, facts))
    meter = build_meter(model, precision, phases[state.phase].loader.settings, ranks)
    return Built(trained, averaging, phases, meter, state)
