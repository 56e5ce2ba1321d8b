"""The training stage: the loop over phases and steps, resumable at any step. `step` trains one step.

In: an `examples` artifact, a vocabulary artifact and the recipe's `train`, `model` and `optim` sections. Out: a folder
with `checkpoints/`, `metrics.jsonl`, the finished `model/` and, once everything is done, a manifest. The same call
continues where it stopped. Changed settings are refused once checkpoints exist, except that the length of a phase that
has not ended may grow.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bertwright.core import rng
from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.log import SILENT
from bertwright.core.stage_context import StageContext
from bertwright.examples.example_set import StepCounts
from bertwright.model.batch import to_device
from bertwright.tasks.members import task_of
from bertwright.train.after_step import after_step, end_now, row_is_due, score_late
from bertwright.train.checkpoints.finalize import finalize, handle_finished, reopen
from bertwright.train.guard import loss_limit, norm_limit, record_update, roll_back
from bertwright.train.micro_batch import BatchSource, Drawn, prefetch
from bertwright.train.monitor.expected import Bands
from bertwright.train.monitor.guesses import questions_for
from bertwright.train.monitor.session_record import training_summary
from bertwright.train.monitor.step_stats import StepStats
from bertwright.train.precision.loss_scale import is_lower, scale_after
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.scoring import choose_weights
from bertwright.train.session import Session, mirror_checkpoints, open_session
from bertwright.train.settings.identity import Inputs, Settings, open_finished
from bertwright.train.settings.phases import Phase
from bertwright.train.setup.build import build, log_baseline
from bertwright.train.setup.job import job_of
from bertwright.train.setup.training_environment import training_environment
from bertwright.train.state import State
from bertwright.train.step import MicroBatchTooLargeError, StepResult, StepSettings, train_step


def run(
    settings: Settings,
    inputs: Inputs,
    context: StageContext,
    scored_after: int = 0,
    saved: Callable[[Path], None] = lambda _: None,
    step_bands: Bands = (),
) -> Artifact | None:
    """Train to the end of the last phase, or continue; see the module docstring. Returns None on a rank other than 0 if
    this start has finished the training.

    `scored_after`: token slots of the held-out sequences scored afterwards, for the forecast of the remaining time.
    `saved` is called on rank 0 with the path of each new checkpoint, and with the newest one again if training has
    diverged. `step_bands`: the expected seconds of a step of each phase; the log says when steps leave them.

    Raises `ArtifactError` if `context.out` holds checkpoints of other settings, `CheckpointError` if none of them is
    valid, `DivergedError` if training diverges, `Interrupted` after a signal.
    """
    job = job_of(settings, inputs, context.out, scored_after, saved, step_bands)
    if done := open_finished(job.out, job.identity):
        handle_finished(job, context.log)
        return done
    task_of(job.config.objective).check(job.network, [phase.length for phase in job.config.phases], inputs.vocab)
    with training_environment(job, context.log) as (job, ranks, requests):
        log = context.log if ranks.first else SILENT
        job, trainee, state = build(job, ranks, log)
        positions = job.network.max_position_embeddings
        job = replace(job, questions=questions_for(settings, inputs, positions, log))
        if ranks.first:
            reopen(job)
        with mirror_checkpoints(job, ranks, log) as job:
            log_baseline(inputs.examples.counts["heldout"], log)
            with open_session(job, trainee, state, requests, log) as session:
                if not state.total_steps:
                    session.monitor.guesses.record(trainee, state)
                state = train(session, state)
                chosen = choose_weights(session, job.phases[-1], state, job.config.averaging)
            # On all ranks, although only rank 0 writes: a sharded engine has to collect the parts.
            weights, _ = trainee.engine.gather()
            if ranks.first:
                log.say(f"train: {training_summary(state)}")
                finalize(job, weights, chosen)
        # If a rank exited early, the launcher would kill rank 0 while it is still writing.
        ranks.barrier()
    # Other ranks do not open it: on another machine, a mounted storage may show late what rank 0 has written.
    return open_artifact(job.out, "train") if ranks.first else None


def train(session: Session, state: State) -> State:
    """Train from `state` to the end of the last phase."""
    only_new_rows = False
    for phase in session.phases[state.phase :]:
        if phase.only_new_rows is not only_new_rows:
            only_new_rows = phase.only_new_rows
            session.trainee.train_rows(session.trainee.new_rows if only_new_rows else None)
        if state.phase < phase.index:
            # NVIDIA's hand-over: the moments are kept, the bias correction restarts with the phase.
            if phase.restart_bias_correction:
                session.trainee.engine.restart_steps()
            ended = session.phases[state.phase]
            state = state.next_phase(phase.index, state.data_step < ended.steps, ended.target_accuracy)
        if state.unscored:
            state = score_late(session, phase, state)
        if not phase.over(state.data_step, state.phase_seconds) and not phase.reached(state.heldout):
            state = train_phase(session, phase, state)
        elif not state.phase_end:
            state = end_now(session, phase, state)
        session.write_graph(phase)
    return state


def train_phase(session: Session, phase: Phase, state: State) -> State:
    """Train from `state` to the end of the phase; raises `Interrupted` after saving when a stop was requested."""
    trainee, loader = session.trainee, phase.loader
    ranks, source = trainee.ranks, BatchSource(phase, trainee, session.monitor.log)
    # Each fetch also returns the counts of the next step, so that their all-reduce runs one step ahead.
    ahead = prefetch(source.fetch, state.data_step, phase.steps)
    # The first step has no predecessor to fetch its counts.
    pending = ranks.all_reduce_async(loader.counts(state.data_step, ranks.rank, ranks.world))
    stats, name = StepStats(began=time.perf_counter()), f"phase {phase.index}"
    session.monitor.progress(name, state.data_step, phase.steps, "steps")
    for (drawn, next_counts), waited in ahead:
        counts = StepCounts(*pending.result())
        pending = ranks.all_reduce_async(next_counts)
        # Based on applied updates, not on batches drawn: a dropped step must not shorten the schedule.
        rate = phase.rate(state.optimizer_step, state.phase_seconds)
        with session.monitor.profile_step(trainee, waited) as taken:
            result = _step(replace(session, trainee=taken), source, state, (drawn, counts), rate)
        if session.trainee.averaging:  # before the step's time is taken, because it is part of it
            session.trainee.averaging.after(trainee.model.state_dict(), state.total_steps + 1, result.applied)
        stats.rate = rate
        stats.flops += session.monitor.throughput.flops(drawn.micro_batches, phase.only_new_rows)
        seconds = _agree_on_seconds(ranks, phase, stats.add(result, counts.tokens, waited))
        stats.part_ends = phase.part(state.phase_seconds) != phase.part(state.phase_seconds + seconds)
        state = _count_step(session, source, state, result, counts, seconds)
        session.monitor.progress(name, state.data_step, phase.steps, "steps")
        state, stats = after_step(session, phase, state, stats, drawn.micro_batches)
        if state.phase_end:  # before its last step, if its time is used up
            break
    ahead.close()
    pending.result()
    return state


def _step(
    session: Session, source: BatchSource, state: State, batch: tuple[Drawn, StepCounts], rate: float
) -> StepResult:
    """Train one step on a global batch, of which this rank has drawn its share; retry with smaller micro-batches if
    memory runs out."""
    trainee, phase, (drawn, counts) = session.trainee, source.phase, batch
    totals = {term: getattr(counts, what) for term, what in trainee.objective.counted.items()}
    settings = StepSettings(
        rate,
        # Derived from the step instead of a generator's state: a resumed run draws the same dropout with nothing saved.
        rng.key(phase.seed, "dropout", phase.index, state.data_step),
        state.scale.factor if state.scale else 1.0,
        norm_limit(session.guard, state),
        loss_limit(session.guard, state),
        accuracy=row_is_due(phase, state.data_step + 1),
        may_run_out=phase.finds_micro_batch,
    )
    device = trainee.precision.device
    while True:
        prepared = source.current(state.data_step, drawn).prepared
        try:
            with trainee.ranks.on_device(device):
                # Each batch is moved to the device when needed, so that memory does not grow with accumulation.
                return train_step(trainee, (to_device(batch, device) for batch in prepared), totals, settings)
        except MicroBatchTooLargeError:
            # Do not halve here: until this block is left, the exception references the tensors that fill the memory.
            if not source.can_halve(state.data_step):
                raise
        source.halve(state.data_step)


def _count_step(
    session: Session, source: BatchSource, state: State, result: StepResult, counts: StepCounts, seconds: float
) -> State:
    """Return the state after a step that took `seconds`, with the loss scale and the guard updated."""
    trainee, phase = session.trainee, source.phase
    scale = scale_after(trainee.precision.config, state.scale, math.isfinite(result.grad_norm))
    sequences = phase.loader.settings.batches.at(state.data_step)
    # If the loss is finite and the scale can be lowered, it was too high, which says nothing about the weights.
    overflowed = math.isfinite(result.loss) and is_lower(scale, state.scale)
    state = state.next_step(result.applied, sequences, counts.tokens, seconds, scale, overflowed)
    state = record_update(session.guard, source.record_update(state), result)
    return roll_back(session, phase, state) if state.skipped_in_a_row >= session.guard.patience else state


def _agree_on_seconds(ranks: Ranks, phase: Phase, seconds: float) -> float:
    """Return the seconds of a step; if the learning rate follows time, those of rank 0, because all ranks need the same
    rate."""
    if not phase.budget or ranks.world == 1:
        return seconds
    (microseconds,) = ranks.all_reduce_async([int(seconds * 1e6) if ranks.first else 0]).result()
    return microseconds / 1e6
