"""What is trained, from the job: network, optimizer, engine and objective, and the state to go on from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from bertwright.core.log import Log
from bertwright.train.averaging.averaging import Averaging, build_averaging
from bertwright.train.engine.ds_config import step_of
from bertwright.train.engine.engine import build_engine
from bertwright.train.facts import session_facts
from bertwright.train.job import Job
from bertwright.train.meter import Meter, build_meter
from bertwright.train.network import build_network
from bertwright.train.phases import Phase
from bertwright.train.precision.loss_scale import scale_from
from bertwright.train.ranks import Ranks
from bertwright.train.resume import check_phase_lengths, where_to_start
from bertwright.train.start import is_deterministic, training_device
from bertwright.train.state import State
from bertwright.train.trained import Trained
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
    network = build_network(job.network, job.config, device)
    precision, model = network.precision, network.model
    numbers = f"{job.network.parameters:,} parameters in {precision.config.kind}, {job.config.graph.kind}"
    log.say(f"train: {numbers} on {device}, attention kernel {network.kernel}")
    if not is_deterministic(job.config):
        log.say("train: not deterministic: another run has other bits. train.deterministic=true gives the same again")
    averaging = build_averaging(job.config.averaging, job.phases)
    start = where_to_start(job, model, averaging, ranks, log)
    # From the weights to begin with, whole on every rank: an engine may hold them in parts from then on.
    engine = build_engine(job.config.engine, model, job.optim, ranks, step_of(job.config))
    engine.load(start.moments)
    trained = network.trained(engine, ranks, job.pair_task)
    state = check_phase_lengths(start.state, job.phases)
    if threads := threads_for(job.config, state.sessions):
        # Each rank measures what is free; what the run goes on with is one number for all.
        torch.set_num_threads(min(ranks.each(threads)))
    phases = job.phases
    if any(phase.finds_micro_batch for phase in phases):
        from bertwright.train.found_size import sized_phases

        phases = sized_phases(job, state, device, ranks, log)
    facts = session_facts(state, device, network.kernel, ranks, job.config, phases)
    state = replace(state, scale=scale_from(precision.config, state.scale), sessions=(*state.sessions, facts))
    meter = build_meter(model, precision, phases[state.phase].loader.settings, ranks)
    return Built(trained, averaging, phases, meter, state)
