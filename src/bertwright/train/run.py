"""The training stage: phases one after another, resumable at any step.

In: an `examples` artifact, a vocabulary artifact and the recipe's `train`, `model` and `optim` sections.
Out: a folder with `checkpoints/`, `metrics.jsonl`, the finished `model/` and, when all is done, a manifest.
The same call continues where it stopped. A changed setting is refused once checkpoints exist, except for the
length of a phase that has not ended, which may grow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact, seal
from bertwright.core.errors import Interrupted
from bertwright.core.files import make_folder, remove_leftovers, sha256, sha256_of
from bertwright.core.log import SILENT, Log
from bertwright.core.signals import stop_on_signals
from bertwright.core.stage_context import StageContext
from bertwright.examples.config import PAIRS
from bertwright.model.device import torch_settings
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import save_model
from bertwright.objectives.objective import build_objective
from bertwright.optim.build import build_optimizer, moment_names
from bertwright.train import checkpoint as checkpoints
from bertwright.train.averaging.averaging import build_averaging
from bertwright.train.engine.engine import build_engine
from bertwright.train.facts import counts, session_facts
from bertwright.train.forecast import Forecast
from bertwright.train.identity import (
    CHECKPOINTS,
    Inputs,
    Settings,
    checkpoint_identity,
    extended,
    finished,
    identity,
    refuse_other_settings,
)
from bertwright.train.job import Job
from bertwright.train.loop import train
from bertwright.train.meter import build_meter
from bertwright.train.metrics import Metrics, read_rows
from bertwright.train.phases import resolve_phases
from bertwright.train.precision.loss_scale import scale_from
from bertwright.train.precision.precision import build_precision
from bertwright.train.ranks import Ranks, process_group
from bertwright.train.session import Session, score_average
from bertwright.train.start import check_phase_lengths, restore_or_initialize, training_device, training_kernel
from bertwright.train.state import State
from bertwright.train.step import Trained

if TYPE_CHECKING:  # loaded where they are asked for
    from bertwright.train.observers.watch import Watch
    from bertwright.train.profiler import StepProfiler

OBSERVERS = "observers"
PROFILE = "profile"


def run(
    settings: Settings,
    inputs: Inputs,
    context: StageContext,
    scored_after: int = 0,
    saved: Callable[[Path], None] = lambda _: None,
) -> Artifact:
    """Train to the end of the last phase, or continue; see the module's page.

    `scored_after`: tokens of room of the held-out sequences that are scored afterwards, for the time that is left.
    `saved` is called on the first rank with the path of each new checkpoint.

    Raises `ArtifactError` when `context.out` holds checkpoints of other settings, `CheckpointError` when none of them
    is whole, `DataError` when training diverges, `Interrupted` after a signal.
    """
    config, out = settings.train, context.out
    pairs = config.objective.next_sentence(inputs.examples.manifest["config"]["examples"]["plan"] in PAIRS)
    run_identity = identity(settings, pairs, inputs.fingerprints, out)
    if done := finished(out, run_identity):
        return done
    # The vocabulary's own hash, so that weights are never read with other words: see `start`.
    words = {"vocabulary": str(inputs.vocab.counts["vocabulary"])}
    checkpoint = checkpoint_identity(settings, pairs, replace(run_identity, inputs={**run_identity.inputs, **words}))
    job = Job(
        config=config,
        network=settings.model.resolve(int(inputs.vocab.counts["entries"]), pairs),
        optim=settings.optim,
        vocab=inputs.vocab,
        phases=resolve_phases(config, inputs.examples, inputs.vocab),
        identity=run_identity,
        checkpoint=checkpoint,
        out=out,
        scored_after=scored_after,
        saved=saved,
    )
    # Batches in low precision are rounded up to a few shapes, so what oneDNN compiles for one serves again.
    torch_is_set = torch_settings(config.threads, keep_kernels=config.precision.kind not in ("fp32", "tf32"))
    with torch_is_set, process_group(config.timeout) as ranks, stop_on_signals() as stop_requested:
        refuse_other_settings(out, checkpoint)
        if ranks.first:
            # Only the first rank writes checkpoints, so it alone clears up.
            checkpoints.remove_partial(make_folder(out / CHECKPOINTS))
        # Ranks on machines with other files or recipes would draw other batches, and nothing later would notice.
        ranks.assert_equal(run_identity.fingerprint, "the settings and data of this run")
        _train(job, ranks, stop_requested, context.log if ranks.first else SILENT)
        if ranks.any(stop_requested()):
            raise Interrupted("training is finished and saved. Run the same command again for the stages that follow.")
    return open_artifact(out, "train")


def _train(job: Job, ranks: Ranks, stop_requested: Callable[[], bool], log: Log) -> None:
    device = training_device(job.config.device, ranks)
    precision, kernel = build_precision(job.config.precision, device), training_kernel(job, device)
    # Every rank draws the same initial weights from the seed, so none has to send them.
    torch.manual_seed(job.config.seed)
    model = PreTrainingModel(job.network, kernel).to(device).train()
    optimizer = build_optimizer(job.optim, model)
    numbers = f"{job.network.parameters:,} parameters in {precision.config.kind}"
    log.say(f"train: {numbers} on {device}, attention kernel {kernel}")
    # Before the engine is built: it takes over tensors as they are, and may hold them in parts from then on.
    averaging = build_averaging(job.config.averaging, sum(phase.steps for phase in job.phases))
    state = restore_or_initialize(job, model, optimizer, averaging, ranks, log)
    engine = build_engine(job.config.engine, model, optimizer, job.optim.max_grad_norm, ranks)
    objective = build_objective(job.config.objective, job.network.next_sentence)
    trained = Trained(model, objective, optimizer, engine, ranks, precision, moment_names(job.optim, model))
    state = check_phase_lengths(state, job.phases)
    facts = session_facts(state, device, kernel, ranks, job.config)
    state = replace(state, scale=scale_from(precision.config, state.scale), sessions=(*state.sessions, facts))
    if ranks.first and (job.out / MANIFEST).is_file():  # the end has moved: what is sealed is no longer the result
        (job.out / MANIFEST).rename(job.out / f".{MANIFEST}.before-extension")
    with (
        Metrics(job.out / "metrics.jsonl", state.total_steps) if ranks.first else nullcontext() as metrics,
        _watched(job, log) if ranks.first and job.config.observers else nullcontext() as watch,
        _profiler(job, device, log) if ranks.first and job.config.profile else nullcontext() as profiler,
    ):
        session = Session(
            trained=trained,
            folder=job.out / CHECKPOINTS,
            identity=job.checkpoint,
            keep=job.config.keep_checkpoints,
            metrics=metrics,
            log=log,
            stop_requested=stop_requested,
            guard=job.config.guard,
            forecast=Forecast(job.phases, job.scored_after),
            saved=job.saved,
            meter=build_meter(model, precision, job.phases[state.phase].loader.settings, ranks),
            profiler=profiler,
            watch=watch,
            averaging=averaging,
        )
        state = train(session, job.phases, state)
        average, scored = score_average(session, job.phases[-1], state)
    # On all ranks, although the first alone writes: an engine that holds parts has to collect them.
    weights, _ = engine.gather()
    if ranks.first:
        _finish(job, average or weights, scored, state)
    # A rank that leaves early would have the first one ended while it still writes.
    ranks.barrier()


def _profiler(job: Job, device: torch.device, log: Log) -> AbstractContextManager[StepProfiler]:
    """The profiler of some steps of this start, which writes what it has at the end of the block."""
    from bertwright.train.profiler import StepProfiler

    return closing(StepProfiler(job.config.profile, job.out / PROFILE, device, log))


def _watched(job: Job, log: Log) -> AbstractContextManager[Watch]:
    """The observers of this start, which are first given the rows that stand in metrics.jsonl."""
    from bertwright.train.observers.observer import Observed
    from bertwright.train.observers.watch import watched

    # Of the folder too: the same recipe may be trained in two of them. Moved, it is another training to an observer.
    key = sha256_of([job.checkpoint.fingerprint, str(job.out.resolve())])
    observed = Observed(job.out.parent.name, key, job.out / OBSERVERS, job.identity.config)
    return watched(job.config.observers, observed, read_rows(job.out / "metrics.jsonl"), log)


def _finish(job: Job, weights: Mapping[str, Tensor], state: State, trained: State) -> None:
    """Save the finished model and seal the folder; `trained` has the scores of weights that are not averaged."""
    save_model(job.out / "model", job.network, weights, job.vocab.file("vocab.txt").read_bytes())
    remove_leftovers(job.out)
    model = sha256_of({path.name: sha256(path) for path in sorted((job.out / "model").iterdir())})
    sealed = extended(job.identity, state.extensions, model)
    init = {"folder": job.config.init_from, "fingerprint": job.identity.inputs.get("train.init_from")}
    facts = counts(state, job.network, job.vocab, model, init)
    if job.config.averaging.kind != "none":
        facts["averaging"] = {"kind": job.config.averaging.kind, "trained_heldout": dict(trained.heldout)}
    # Checkpoints are artifacts of their own: one may be deleted or damaged without touching the finished model. Files
    # of observers are for looking at, and their programs may write to them later.
    seal(job.out, sealed, facts, state.seconds + state.other_seconds, without=(CHECKPOINTS, OBSERVERS, PROFILE))
