"""Builds what a job trains: network, optimizer, engine and objective, and the state to continue from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bertwright.core.log import Log
from bertwright.core.plugins import packages_of
from bertwright.model.config import has_row_per_entry
from bertwright.model.model import Model
from bertwright.optim.config import MuonConfig, OptimConfig
from bertwright.train.averaging.averaging import build_averaging
from bertwright.train.engine.chosen_rows import Rows
from bertwright.train.engine.ds_config import step_of
from bertwright.train.engine.engine import build_engine
from bertwright.train.graph.config import CompiledConfig
from bertwright.train.graph.recorded import build_recorder
from bertwright.train.machine.cpu_isa import in_use
from bertwright.train.machine.thread_policy import threads_for, threads_message
from bertwright.train.monitor.session_record import session_record
from bertwright.train.precision.config import Bf16Config, PrecisionConfig
from bertwright.train.precision.loss_scale import scale_from
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.settings.phase_changes import check_phase_lengths, growth_message
from bertwright.train.settings.unreachable_settings import known_ends, partly_reached_settings
from bertwright.train.setup.choose_attention import resolve_attention
from bertwright.train.setup.job import TrainJob
from bertwright.train.setup.resume import find_start
from bertwright.train.setup.trainee import Network, Trainee, build_network
from bertwright.train.setup.training_environment import is_deterministic, training_device
from bertwright.train.state import State


def build(job: TrainJob, ranks: Ranks, log: Log) -> tuple[TrainJob, Trainee, State]:
    """Build everything that training needs; load weights, moments and average from the newest checkpoint, if any.

    Returns the job with its attention kernel and micro-batch sizes resolved, what to train, and the state to continue
    from, which includes the record of this start.
    """
    device = training_device(job.config.device)
    job = resolve_attention(job, device, ranks, log)
    network = build_network(job.network, job.config, device)
    precision, model = network.precision, network.model
    _say(job, network, device, log)
    averaging = build_averaging(job.config.averaging, job.phases)
    start = find_start(job, model, averaging, ranks, log)
    state = check_phase_lengths(start.state, job.phases)
    for extension in state.extensions[len(start.state.extensions) :]:
        index = extension["phase"]
        log.say(f"train: {growth_message(extension, job.phases[index], job.config.phases[index], state)}")
    _set_threads(job, state, ranks, log)
    if job.config.init_embeddings == "text" and not state.sessions:  # the first start
        from bertwright.train.setup.initial_weights import start_from_text

        seconds = start_from_text(model, job.phases[0].loader, ranks, job.config.seed, log, start.new_V)
        state = replace(state, seconds=seconds)
    # Built from the initial weights, which are complete on every rank; an engine may shard them from then on.
    optim = in_precision(job.optim, precision.config)
    engine = build_engine(job.config.engine, model, optim, ranks, step_of(job.config))
    engine.load(start.moments)
    recorder = build_recorder(job.config, engine, device, log)
    trainee = replace(
        network.trainee(engine, ranks, job.pair_task, averaging),
        recorder=recorder,
        new_rows=_new_rows(model, state, start.new_V),
    )
    if any(phase.finds_micro_batch for phase in job.phases):
        from bertwright.train.micro_batch import size_phases

        job = replace(job, phases=size_phases(job, state, device, ranks, log))
    if isinstance(job.config.graph, CompiledConfig):
        job = replace(job, phases=[job.in_full_rows(phase, ranks.world) for phase in job.phases])
    record = session_record(state, device, network.kernel, ranks, job.config, job.phases)
    record |= {**job.choices} | ({"init": start.init} if start.init else {})
    if start.new_V is not None:
        from bertwright.model.new_rows import to_text

        record |= {"new_rows": to_text(start.new_V)}
    if plugins := packages_of({"optim": job.optim, "train": job.config}):
        record |= {"plugins": plugins}
    return (
        job,
        trainee,
        replace(state, scale=scale_from(precision.config, state.scale), sessions=(*state.sessions, record)),
    )


def _new_rows(model: Model, state: State, new_V: NDArray[np.bool_] | None) -> Rows | None:
    """Return the rows of new entries, by the names of the tensors that have a row for each entry: from this start, or
    as recorded by the first one. None if there are none."""
    if new_V is None and state.sessions and (recorded := state.sessions[0].get("new_rows")):
        from bertwright.model.new_rows import from_text

        new_V = from_text(recorded)
    if new_V is None:
        return None
    rows = torch.from_numpy(np.flatnonzero(new_V))
    return {name: rows for name, _ in model.named_parameters() if has_row_per_entry(name)}


def _set_threads(job: TrainJob, state: State, ranks: Ranks, log: Log) -> None:
    """Set the number of torch's threads, the same on all ranks, and log it if it was measured."""
    # All ranks use the minimum, of free cores or of torch's own choices: with different numbers they would add in
    # different orders, and their weights would drift apart.
    threads = min(ranks.each(threads_for(job.config, state.sessions) or torch.get_num_threads()))
    torch.set_num_threads(threads)
    if job.config.threads == "auto":
        log.say(f"train: {threads_message(threads, state.sessions)}")


def in_precision(optim: OptimConfig, precision: PrecisionConfig) -> OptimConfig:
    """The optimizer, with products in bfloat16 if those of the network are."""
    if isinstance(optim, MuonConfig) and optim.products == "auto" and isinstance(precision, Bf16Config):
        return optim.model_copy(update={"products": "bf16"})
    return optim


def _say(job: TrainJob, network: Network, device: torch.device, log: Log) -> None:
    """Log how the network computes, and what could be known of its training only from the examples."""
    numbers = f"{job.network.parameters:,} parameters in {network.precision.config.kind}, {job.config.graph.kind}"
    # On a CPU they determine the order of summation, and with it the bits of the result.
    isa = f", instructions {in_use()}" if device.type == "cpu" and in_use() else ""
    log.say(f"train: {numbers} on {device}, attention kernel {network.kernel}{isa}")
    if not is_deterministic(job.config):
        log.say(
            "train: not deterministic: another run gives slightly different numbers. With train.deterministic=true "
            "the numbers are identical"
        )
    if known_ends(job.config) is None:  # otherwise this was logged before any stage
        for key, text, remedy in partly_reached_settings(job.config, [phase.steps for phase in job.phases]):
            log.say(f"warning: {key}: {text} {remedy}")


def log_baseline(heldout: Mapping[str, Any], log: Log) -> None:
    """Log the held-out score of an answer that ignores the text, from the counts of the held-out examples."""
    if baseline := _baseline(heldout):
        log.say(f"train: to compare the held-out scores with: {baseline}")


def _baseline(heldout: Mapping[str, Any]) -> str:
    if (majority := heldout.get("majority")) is not None:
        return f"always answering {heldout['majority_label']!r} has an accuracy of {majority:.1%}"
    if (constant := heldout.get("constant_loss")) is not None:
        return f"always answering the mean has a squared error of {constant:.3f}"
    unigram = heldout.get("unigram_loss")
    return "" if unigram is None else f"word frequencies alone have a loss of {unigram:.3f}"
