"""One start of training: what stays the same over all phases, and what it writes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch

from bertwright.core.errors import DivergedError, Interrupted
from bertwright.core.files import sha256_of
from bertwright.core.log import Log
from bertwright.model.model import Model
from bertwright.train.checkpoints.store import CheckpointStore, ShardedWriter, Writer
from bertwright.train.config import GuardConfig
from bertwright.train.engine.ds_config import write_ds_config
from bertwright.train.machine.stop_requests import StopRequests
from bertwright.train.monitor.expected import ExpectedTime
from bertwright.train.monitor.guesses import Guesses
from bertwright.train.monitor.metrics import Metrics, read_rows
from bertwright.train.monitor.monitor import Monitor
from bertwright.train.monitor.throughput import measure_throughput
from bertwright.train.ranks.agreement import check_same_weights
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.settings.forecast import Forecast
from bertwright.train.settings.phases import Phase
from bertwright.train.setup.job import TrainJob
from bertwright.train.setup.trainee import Trainee
from bertwright.train.state import State
from bertwright.transfer.parts import CHECKPOINTS, GUESSES

if TYPE_CHECKING:  # imported only if requested
    from bertwright.train.monitor.observers.watch import Watch
    from bertwright.train.monitor.profiler import StepProfiler


@dataclass(frozen=True)
class Session:
    """Created once per start; the training loop works with it."""

    trainee: Trainee
    phases: Sequence[Phase]
    monitor: Monitor
    """Receives what is measured."""
    checkpoints: CheckpointStore
    """Keeps checkpoints."""
    requests: StopRequests
    """External requests to stop or save."""
    guard: GuardConfig
    """How to handle bad gradients and losses."""
    compare_every: int = 0
    """Steps between comparisons of the weights of all ranks, which also precede each checkpoint; 0: never."""

    def compare_ranks(self, step: int, saving: bool) -> None:
        """If due, check that all ranks hold the same weights after `step`; all ranks must call this together.

        Skipped for engines whose ranks do not hold all weights.
        """
        if self.trainee.engine.has_full_weights and self.compare_every and (saving or step % self.compare_every == 0):
            check_same_weights(self.trainee.ranks, self.trainee.model, step)

    def write_graph(self, phase: Phase) -> None:
        """Write the network at the end of a phase as ONNX, on rank 0, if ONNX Runtime runs it."""
        trainee, world = self.trainee, self.trainee.ranks.world
        if trainee.exported is None or not trainee.ranks.first:
            return
        batch = trainee.read(trainee.to_compute(phase.loader.step(0, 0, world))[0], partial(phase.loader.room, world))
        trainee.exported.write(self.checkpoints.folder.parent / f"phase-{phase.index}.onnx", batch)


OBSERVERS = "observers"
PROFILE = "profile"


@contextmanager
def mirror_checkpoints(job: TrainJob, ranks: Ranks, log: Log) -> Iterator[TrainJob]:
    """Yield the job, with each checkpoint and, at the end of the block, the finished model copied to the recipe's
    mirror, if any. If training is stopped, all ranks wait for the last copy."""
    try:
        with _with_mirror(job, ranks, log) if job.config.mirror and ranks.first else nullcontext(job) as with_mirror:
            yield with_mirror
    except (Interrupted, DivergedError):
        # All ranks stop together. If one exited early, the launcher would kill rank 0 while it still writes or copies.
        ranks.barrier()
        raise


@contextmanager
def _with_mirror(job: TrainJob, ranks: Ranks, log: Log) -> Iterator[TrainJob]:
    from bertwright.transfer.mirror import Mirror

    with Mirror(job.mirrored_training(prune=True), log, ranks.finishing) as mirror:

        def saved(checkpoint: Path) -> None:
            job.saved(checkpoint)
            mirror.request_copy()

        yield replace(job, saved=saved)
        mirror.request_final_copy()


@contextmanager
def open_session(job: TrainJob, trainee: Trainee, state: State, requests: StopRequests, log: Log) -> Iterator[Session]:
    """Yield the session of this start, which continues from `state`; at the end of the block everything it wrote is on
    disk."""
    ranks, device = trainee.ranks, trainee.precision.device
    first, profile = ranks.first, ranks.first and job.config.profile
    sharded = ranks.world > 1 and _writes_shards(job, ranks.world)
    if first:
        write_ds_config(job.out, job.config, job.optim, ranks.world)
    settings = job.phases[state.phase].loader.settings
    throughput = measure_throughput(cast(Model, trainee.model), trainee.precision, settings, ranks)
    with (
        Metrics(job.out / "metrics.jsonl", state.total_steps) if first else nullcontext() as metrics,
        _observers(job, ranks, log) if first and job.config.observers else nullcontext() as watch,
        _profiler(job, device, log) if profile else nullcontext() as profiler,
        Guesses(job.questions, job.out / GUESSES if first else None, state.total_steps) as guesses,
        Writer(job.config.saves_beside(device.type == "cuda")) if first or sharded else nullcontext() as writer,
    ):
        monitor = Monitor(
            log=log,
            metrics=metrics,
            throughput=throughput,
            forecast=Forecast(job.phases, job.scored_after),
            expected=job.config.expected,
            expected_time=ExpectedTime(job.step_bands),
            guesses=guesses,
            watch=watch,
            profiler=profiler,
        )
        checkpoints = CheckpointStore(
            folder=job.out / CHECKPOINTS,
            identity=job.checkpoint,
            keep=job.config.keep_checkpoints,
            trainee=trainee,
            writer=writer,
            sharded=ShardedWriter(ranks, writer) if sharded and writer else None,
            saved=job.saved,
            sync_rows=monitor.sync,
        )
        every = job.config.compare_ranks_every
        yield Session(trainee, job.phases, monitor, checkpoints, requests, job.config.guard, every)


def _writes_shards(job: TrainJob, world: int) -> bool:
    from bertwright.train.memory.rank_memory import writes_shards

    return writes_shards(job.config, job.network, job.optim, world)


def _profiler(job: TrainJob, device: torch.device, log: Log) -> AbstractContextManager[StepProfiler]:
    """Return the profiler of some steps of this start, which writes its results at the end of the block."""
    from bertwright.train.monitor.profiler import StepProfiler

    return closing(StepProfiler(job.config.profile, job.out / PROFILE, device, log))


def _observers(job: TrainJob, ranks: Ranks, log: Log) -> AbstractContextManager[Watch]:
    """Return the observers of this start, which first receive the rows already in metrics.jsonl."""
    from bertwright.train.monitor.observers.observer import Observed
    from bertwright.train.monitor.observers.watch import open_observers

    # Includes the folder: the same recipe may be trained in two of them. To an observer, a moved folder is a new
    # training.
    key = sha256_of([job.checkpoint.fingerprint, str(job.out.resolve())])
    observed = Observed(job.out.parent.name, key, job.out / OBSERVERS, job.identity.config)
    return open_observers(job.config.observers, observed, read_rows(job.out / "metrics.jsonl"), log, ranks.busy)
