"""The recipe's phases resolved against the data into steps and intervals, and the batches of each for training and
scoring. Does not import torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import Literal

import numpy as np

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.examples.batch import MicroBatch
from bertwright.examples.config import PlanSet
from bertwright.examples.loader import Heldout, Loader, LoaderSettings
from bertwright.examples.padding import Room
from bertwright.examples.planned import heldout_batches, open_loader
from bertwright.examples.store import Store
from bertwright.optim.schedule import Schedule, learning_rate
from bertwright.tasks.members import task_of
from bertwright.train.config import TrainConfig
from bertwright.train.memory.kept_numbers import HELDOUT_MICRO_BATCH
from bertwright.train.settings.phase_config import PhaseConfig
from bertwright.train.settings.unreachable_settings import unreachable_settings

ACCURACY = "mlm_accuracy"
"""The held-out score that can end a phase."""
Interval = int | Literal["epoch"]
"""Steps between two events; "epoch": they happen after the last step of each epoch."""
PARTS_OF_A_PHASE = 10
"""How often a phase is scored and saved if the recipe does not say."""


@dataclass(frozen=True)
class Phase:
    """A phase with all settings resolved to steps."""

    index: int
    loader: Loader
    heldout: Callable[[], list[MicroBatch]]
    """Returns the held-out batches, with fixed masks."""
    heldout_sequences: int
    """Number of held-out sequences."""
    steps: int
    """Global batches after which the phase ends."""
    schedule_steps: int
    """Length that the learning rate follows: more than `steps` if the phase ends early."""
    warmup_steps: float
    schedule: Schedule
    peak: float
    """Peak learning rate."""
    seed: int
    log_every: Interval
    evaluate_every: Interval
    checkpoint_every: Interval
    restart_bias_correction: bool = True
    """Whether the optimizer's update count restarts at 0 at the hand-over to this phase."""
    only_new_rows: bool = False
    """Whether the phase trains only the rows of new entries."""
    budget: float = 0.0
    """Seconds of training after which the phase ends, and which its rate follows instead of updates; 0: none."""
    target_accuracy: float | None = None
    """Held-out accuracy of masked tokens at which the phase ends."""
    own_heldout: Callable[[], Heldout] | None = None
    """Returns the held-out examples of a task with files of its own, which `heldout` are the batches of."""
    finds_micro_batch: bool = False
    """Whether the micro-batch size is found when training starts, and halved if memory runs out."""

    def rate(self, optimizer_step: int, seconds: float) -> float:
        """Return the learning rate of the next update, given the applied updates and the seconds of this phase.

        With a budget, the schedule's formula counts milliseconds instead of updates: the share of time spent is the
        share of the schedule. Such a rate depends on the speed of the machine, so a run that is stopped and resumed
        continues with the rate it had, but does not give the same bits as an uninterrupted run.
        """
        if not self.budget:
            return learning_rate(self.schedule, optimizer_step, self.schedule_steps, self.warmup_steps, self.peak)
        total = math.ceil(self.budget * 1000)
        warmup = self.warmup_steps / self.schedule_steps * total
        return learning_rate(self.schedule, min(int(seconds * 1000), total - 1), total, warmup, self.peak)

    def reached(self, heldout: Mapping[str, float]) -> bool:
        """Whether these held-out scores end the phase."""
        return self.target_accuracy is not None and heldout.get(ACCURACY, 0.0) >= self.target_accuracy

    def over(self, step: int, seconds: float) -> bool:
        """Whether the phase ends after `step` steps and `seconds` seconds of it."""
        return step >= self.steps or 0 < self.budget <= seconds

    def epochs(self, step: int) -> int:
        """Return how many epochs the first `step` steps have completed."""
        sizes = self.loader.examples.sizes
        rounds, rest = divmod(self.loader.settings.batches.before(step), sum(sizes))
        return rounds * len(sizes) + sum(end <= rest for end in accumulate(sizes))

    def due(self, every: Interval, step: int) -> bool:
        """Whether something that happens at this interval happens after `step` steps."""
        if every == "epoch":
            return self.epochs(step) > self.epochs(step - 1)
        return step % every == 0

    def times(self, every: Interval, done: int, end: int) -> int:
        """Return how often something that happens at this interval, and at the end, happens after step `done`."""
        if every != "epoch":
            return -(-end // every) - done // every
        last = end > done and not self.due(every, end)
        return min(self.epochs(end) - self.epochs(done), end - done) + last

    def part(self, seconds: float) -> int:
        """Return the index of the current part of the time budget; the end of each part is scored and saved."""
        return int(seconds / self.budget * PARTS_OF_A_PHASE) if self.budget else 0

    def with_micro_batch(self, micro_batch: int) -> Phase:
        """Return the same phase with micro-batches of at most `micro_batch` sequences (or rows)."""
        return replace(self, loader=self.loader.with_micro_batch(micro_batch))

    @property
    def room(self) -> int:
        """Token slots of a global batch (sequences times length)."""
        return self.loader.settings.global_batch * self.loader.settings.length

    def heldout_shape(self) -> Room:
        """Return the shape of a forward pass that scores, for fixed shapes."""
        batches = self.heldout()
        rows = max(HELDOUT_MICRO_BATCH, *(len(batch.cu_rows) - 1 for batch in batches))
        # A held-out row is one sequence, and a second one fills it up.
        return Room(rows, self.loader.settings.length, 2 * rows, max(1, *(len(batch.labels) for batch in batches)))

    @property
    def heldout_room(self) -> int:
        """Token slots of the held-out sequences."""
        return self.heldout_sequences * self.loader.settings.length


def resolve_phases(config: TrainConfig, examples: Artifact, vocab: Artifact) -> list[Phase]:
    """Resolve every phase of `config`; raises if a phase's own data has another vocabulary or contains held-out
    documents, or if settings have no effect on phases of these lengths."""
    phases = [_resolve(config, i, examples, vocab) for i in range(len(config.phases))]
    if wrong := [
        f"{key}: {text}" for key, text in unreachable_settings(config, [phase.schedule_steps for phase in phases])
    ]:
        raise RecipeError("\n".join(wrong))
    if not any(phase.rate(step, 0.0) for phase in phases for step in range(phase.steps)):
        raise RecipeError(
            f"the learning rate is 0 in all {sum(phase.steps for phase in phases):,} steps, so nothing would be "
            "learned. Give train.phases more steps, a longer warm-up or another schedule."
        )
    return phases


def _resolve(config: TrainConfig, index: int, examples: Artifact, vocab: Artifact) -> Phase:
    phase = config.phases[index]
    settings = LoaderSettings(
        length=phase.length,
        masking=phase.masking,
        global_batch=phase.batch,
        micro_batching=phase.micro_batching,
        seed=config.seed,
        phase=str(index),
        batch_warmup=phase.batch_warmup,
    )
    loader = loader_of(config, index, settings, examples, vocab)
    steps = _steps(phase, loader)
    if wrong := phase.wrong_end(steps) or phase.wrong_warmup(steps):
        raise RecipeError(f"train.phases.{index}: {wrong}")
    (sequences,) = examples.counts["heldout"]["rows"][PlanSet(length=phase.length).name]
    part = max(1, math.ceil(steps / PARTS_OF_A_PHASE))
    return Phase(
        index=index,
        loader=loader,
        # Loaded when first scored, and cached: a forecast or a plan of phases never needs the batches.
        heldout=cache(lambda: heldout_of(config, phase, examples)),
        own_heldout=own_heldout(config, phase, examples),
        heldout_sequences=min(config.heldout_sequences, sequences),
        steps=phase.end_after or steps,
        schedule_steps=steps,
        # From the full length, even if the phase ends early: its rates stay those of the planned phase.
        warmup_steps=phase.warmup_steps(steps),
        schedule=phase.schedule,
        peak=phase.learning_rate,
        seed=config.seed,
        log_every=config.log_every,
        evaluate_every=config.evaluate_every or part,
        checkpoint_every=config.checkpoint_every or part,
        restart_bias_correction=phase.restart_bias_correction,
        only_new_rows=phase.trains == "new-rows",
        budget=3600 * phase.hours if phase.hours else 0.0,
        target_accuracy=phase.target_accuracy,
        finds_micro_batch=phase.micro_batch == "auto",
    )


def _steps(phase: PhaseConfig, loader: Loader) -> int:
    """Return the phase's length in optimizer steps, whatever unit it was given in; a partial step is rounded up."""
    if (known := phase.known_steps()) is not None:
        return known
    if phase.epochs is not None:
        return loader.settings.batches.steps_of(samples_of_epochs(phase.epochs, loader.examples.sizes))
    assert phase.tokens is not None
    return loader.settings.batches.steps_of(phase.tokens, loader.examples.mean_tokens)


def samples_of_epochs(epochs: float, sizes: Sequence[int]) -> float:
    """Return the sequences in `epochs` epochs, where epoch e has `sizes[e mod len(sizes)]` of them."""
    whole, part = int(epochs), epochs - int(epochs)
    return sum(sizes[e % len(sizes)] for e in range(whole)) + part * sizes[whole % len(sizes)]


def loader_of(config: TrainConfig, index: int, settings: LoaderSettings, examples: Artifact, vocab: Artifact) -> Loader:
    """Return the loader of the training batches of phase `index`.

    Raises `ArtifactError` if they contain documents that the run holds out.
    """
    if files := task_of(config.objective).own_examples:
        return Loader(files.open(examples, "train", settings.length, vocab), settings)
    if own := [data for data in config.imported_data() if data.phase == index]:
        # Imported only for data in other formats, to load few modules otherwise.
        from bertwright.examples.imported import open_imported

        return open_imported(examples, own[0], settings, vocab)
    phase = config.phases[index]
    source = examples if phase.data is None else _own_data(phase, index, examples)
    return open_loader(source, PlanSet(length=phase.length, document_range=phase.document_range), settings, vocab)


def _own_data(phase: PhaseConfig, index: int, examples: Artifact) -> Artifact:
    """Return the phase's own examples; raise `ArtifactError` if they contain documents that the run holds out."""
    assert phase.data is not None
    own = open_artifact(phase.data, "examples")
    # Compared by text hash: a document keeps its hash if another run or dump numbers it differently.
    leaked = int(np.isin(Store.open(own).hashes, Store.open(examples, "heldout").hashes).sum())
    if leaked:
        raise ArtifactError(
            f"train.phases.{index}.data {phase.data} trains on {leaked:,} documents that this run holds out, so its "
            "held-out scores would be wrong. Make that data with an examples.heldout at least as large as this run's."
        )
    return own


def heldout_of(config: TrainConfig, phase: PhaseConfig, examples: Artifact) -> list[MicroBatch]:
    """Return the run's held-out batches, also for a phase with its own data: all phases are scored on the same
    documents."""
    length, masking, most = phase.length, phase.masking, config.heldout_sequences
    if own := own_heldout(config, phase, examples):
        return list(own().batches(HELDOUT_MICRO_BATCH))
    # Always the rate of the first step, even if a schedule changes it: scores of all steps use the same masks.
    rate = masking.rate_at(0)
    return list(heldout_batches(examples, length, masking.most(length), rate, HELDOUT_MICRO_BATCH, most))


def own_heldout(config: TrainConfig, phase: PhaseConfig, examples: Artifact) -> Callable[[], Heldout] | None:
    """Return what opens the held-out examples of a task with files of its own; None for a task that has none."""
    files = task_of(config.objective).own_examples
    if files is None:
        return None
    return lambda: Heldout.evenly(files.open(examples, "heldout", phase.length), config.heldout_sequences)
