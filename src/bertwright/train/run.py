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
from bertwright.core.config import Identity
from bertwright.core.distributed import rank_and_world
from bertwright.core.errors import Interrupted
from bertwright.core.files import make_folder, remove_leftovers, sha256, sha256_of
from bertwright.core.log import SILENT, Log
from bertwright.core.signals import stop_on_signals
from bertwright.core.stage_context import StageContext
from bertwright.examples.config import PAIRS
from bertwright.model.device import resolve_device
from bertwright.model.saved import save_model
from bertwright.objectives.config import DistillationConfig, labels_of
from bertwright.objectives.objective import judged_by
from bertwright.objectives.teacher_config import check_teacher
from bertwright.train import checkpoint as checkpoints
from bertwright.train.agreement import assert_same_training
from bertwright.train.build import Built, build
from bertwright.train.config import TrainConfig
from bertwright.train.facts import counts
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
from bertwright.train.metrics import Metrics, read_rows
from bertwright.train.phases import resolve_phases
from bertwright.train.process_group import process_group
from bertwright.train.ranks import Ranks
from bertwright.train.saving import Writer, written_beside
from bertwright.train.scoring import score_average
from bertwright.train.session import Session
from bertwright.train.sharded import ShardedWriter
from bertwright.train.sizes import writes_shards
from bertwright.train.start import torch_set_for
from bertwright.train.state import State

if TYPE_CHECKING:  # loaded where they are asked for
    from bertwright.train.mirror.mirror import Mirror
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
    `saved` is called on the first rank with the path of each new checkpoint, and of the newest again where training has
    diverged.

    Raises `ArtifactError` when `context.out` holds checkpoints of other settings, `CheckpointError` when none of them
    is whole, `DataError` when training diverges, `Interrupted` after a signal.
    """
    config, out = settings.train, context.out
    plan = inputs.examples.manifest["config"]["examples"]["plan"]
    pairs = config.objective.next_sentence(plan in PAIRS)
    run_identity = identity(settings, pairs, inputs.fingerprints, out)
    # The vocabulary's own hash, so that weights are never read with other words: see `start`.
    words = {"vocabulary": str(inputs.vocab.counts["vocabulary"])}
    checkpoint = checkpoint_identity(settings, pairs, replace(run_identity, inputs={**run_identity.inputs, **words}))
    if done := finished(out, run_identity):
        _finished_before(config, out, checkpoint, context.log)
        return done
    job = Job(
        config=config,
        network=settings.model.resolve(int(inputs.vocab.counts["entries"]), pairs, labels_of(config.objective)),
        optim=settings.optim,
        vocab=inputs.vocab,
        phases=resolve_phases(config, inputs.examples, inputs.vocab),
        identity=run_identity,
        checkpoint=checkpoint,
        out=out,
        pair_task=PAIRS.get(plan, ""),
        scored_after=scored_after,
        saved=saved,
    )
    if isinstance(config.objective, DistillationConfig):
        check_teacher(config.objective, job.network, [phase.length for phase in config.phases], inputs.vocab)
    _start(job, context.log)
    return open_artifact(out, "train")


def _finished_before(config: TrainConfig, out: Path, checkpoint: Identity, log: Log) -> None:
    """What is done for a training that an earlier start has finished: its mirror may be another one by now."""
    if config.observers or config.profile:
        log.say("train: finished already, so no observer is given rows, and no step is profiled.")
    if config.mirror and rank_and_world()[0] == 0:
        from bertwright.train.mirror.mirror import Mirror, Mirrored

        with Mirror(Mirrored(config.mirror, out, checkpoint, config.keep_checkpoints, None), log) as mirror:
            mirror.finished()


def _start(job: Job, log: Log) -> None:
    """Train with torch set for it, among the ranks there are, watching for signals."""
    config, out = job.config, job.out
    gpus = resolve_device(config.device).type == "cuda"
    with (
        torch_set_for(config),
        process_group(config.timeout, config.hang_timeout, gpus) as ranks,
        stop_on_signals() as stop_requested,
    ):
        refuse_other_settings(out, job.checkpoint)
        if ranks.first:
            # Only the first rank writes checkpoints, so it alone clears up.
            checkpoints.remove_partial(make_folder(out / CHECKPOINTS))
            if config.mirror:
                from bertwright.train.mirror.restore import restore

                restore(config.mirror, out, job.checkpoint, log)
        # Ranks on machines with other files or recipes would draw other batches, and nothing later would notice.
        assert_same_training(ranks, job)
        _train(job, ranks, stop_requested, log if ranks.first else SILENT)
        if ranks.any(stop_requested()):
            raise Interrupted("training is finished and saved. Run the same command again for the stages that follow.")


def _train(job: Job, ranks: Ranks, stop_requested: Callable[[], bool], log: Log) -> None:
    built = build(job, ranks, log)
    if ranks.first and (job.out / MANIFEST).is_file():  # the end has moved: what is sealed is no longer the result
        (job.out / MANIFEST).rename(job.out / f".{MANIFEST}.before-extension")
    with _mirrored(job, built, log) if ranks.first and job.config.mirror else nullcontext() as mirror:

        def saved(checkpoint: Path) -> None:
            job.saved(checkpoint)
            if mirror:
                mirror.saved()

        average, scored, state = _train_phases(replace(job, saved=saved), built, stop_requested, log)
        # On all ranks, although the first alone writes: an engine that holds parts has to collect them.
        weights, _ = built.trained.engine.gather()
        if ranks.first:
            _finish(job, average or weights, scored, state if average else None)
        if mirror:
            mirror.finished()
        # A rank that leaves early would have the first one ended while it still writes.
        ranks.barrier()


def _train_phases(
    job: Job, built: Built, stop_requested: Callable[[], bool], log: Log
) -> tuple[Mapping[str, Tensor], State, State]:
    """The averaged weights (none where there is no average), the state with their scores, and that of the weights."""
    trained, first = built.trained, built.trained.ranks.first
    device, profile = trained.precision.device, first and job.config.profile
    sharded = writes_shards(job.config, job.network, job.optim, trained.ranks.world)
    with (
        Metrics(job.out / "metrics.jsonl", built.state.total_steps) if first else nullcontext() as metrics,
        _watched(job, log) if first and job.config.observers else nullcontext() as watch,
        _profiler(job, device, log) if profile else nullcontext() as profiler,
        Writer(written_beside(job.config, device.type == "cuda")) if first or sharded else nullcontext() as writer,
    ):
        session = Session(
            trained=trained,
            folder=job.out / CHECKPOINTS,
            identity=job.checkpoint,
            keep=job.config.keep_checkpoints,
            metrics=metrics,
            writer=writer,
            log=log,
            stop_requested=stop_requested,
            guard=job.config.guard,
            forecast=Forecast(job.phases, job.scored_after),
            saved=job.saved,
            meter=built.meter,
            profiler=profiler,
            watch=watch,
            averaging=built.averaging,
            sharded=ShardedWriter(trained.ranks, writer) if sharded and writer else None,
            expected=job.config.expected,
            compare_every=job.config.compare_ranks_every,
        )
        state = train(session, built.phases, built.state)
        return *score_average(session, job.phases[-1], state), state


def _mirrored(job: Job, built: Built, log: Log) -> Mirror:
    """What copies checkpoints and the finished model to the recipe's mirror."""
    from bertwright.train.mirror.mirror import Mirror, Mirrored

    keep, judged = job.config.keep_checkpoints, judged_by(built.trained.objective)
    return Mirror(Mirrored(job.config.mirror, job.out, job.checkpoint, keep, judged), log)


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


def _finish(job: Job, weights: Mapping[str, Tensor], state: State, trained: State | None) -> None:
    """Save the finished model and seal the folder; where the weights are an average, `trained` has the scores of those
    that were trained."""
    save_model(job.out / "model", job.network, weights, job.vocab.file("vocab.txt").read_bytes())
    remove_leftovers(job.out)
    model = sha256_of({path.name: sha256(path) for path in sorted((job.out / "model").iterdir())})
    sealed = extended(job.identity, state.extensions, model)
    init = {"folder": job.config.init_from, "fingerprint": job.identity.inputs.get("train.init_from")}
    facts = counts(state, job.network, job.vocab, model, init)
    if trained is not None:
        facts["averaging"] = {"kind": job.config.averaging.kind, "trained_heldout": dict(trained.heldout)}
    # Checkpoints are artifacts of their own: one may be deleted or damaged without touching the finished model. Files
    # of observers are for looking at, and their programs may write to them later.
    seal(job.out, sealed, facts, state.seconds + state.other_seconds, without=(CHECKPOINTS, OBSERVERS, PROFILE))
