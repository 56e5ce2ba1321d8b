"""A recipe's phases resolved against the data: plans, steps, intervals, held-out batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.examples.batch import MicroBatch
from bertwright.examples.config import PlanSet
from bertwright.examples.draw import Draws, DrawSettings, heldout_batches, open_draws
from bertwright.train.config import PhaseConfig, TrainConfig
from bertwright.train.loop import Phase, share_of

HELDOUT_MICRO_BATCH = 64


@dataclass(frozen=True)
class PhaseData:
    """A phase and its held-out batches."""

    phase: Phase
    heldout: Callable[[], list[MicroBatch]]


def phase_data(config: TrainConfig, max_grad_norm: float, examples: Artifact, vocab: Artifact) -> list[PhaseData]:
    """Every phase of `config`, resolved; raises when a phase's own data belongs to another vocabulary."""
    return [_resolve(config, i, max_grad_norm, examples, vocab) for i in range(len(config.phases))]


def _resolve(config: TrainConfig, index: int, max_grad_norm: float, examples: Artifact, vocab: Artifact) -> PhaseData:
    phase = config.phases[index]
    source = examples if phase.data is None else open_artifact(phase.data, "examples")
    settings = DrawSettings(
        length=phase.length,
        max_predictions=phase.predictions,
        mask_rate=phase.mask_rate,
        global_batch=phase.batch,
        micro_batch=phase.micro_batch or phase.batch,
        seed=config.seed,
        phase=str(index),
        random_tokens=phase.random_tokens,
    )
    plan_set = PlanSet(length=phase.length, documents=phase.documents)
    draws = open_draws(source, plan_set, settings, vocab)
    steps = _steps(phase, draws)
    resolved = Phase(
        index=index,
        draws=draws,
        steps=steps,
        warmup_steps=phase.warmup * steps,
        schedule=phase.schedule,
        peak=phase.learning_rate,
        max_grad_norm=max_grad_norm,
        seed=config.seed,
        log_every=config.log_every,
        evaluate_every=config.evaluate_every or share_of(steps, 10),
        checkpoint_every=config.checkpoint_every or share_of(steps, 10),
    )

    @cache
    def heldout() -> list[MicroBatch]:
        scored = replace(settings, micro_batch=HELDOUT_MICRO_BATCH)
        return list(heldout_batches(source, plan_set, scored, config.heldout_sequences))

    return PhaseData(resolved, heldout)


def _steps(phase: PhaseConfig, draws: Draws) -> int:
    """The phase's length in optimizer steps, whatever it was given in; a begun step counts whole."""
    if phase.steps is not None:
        return phase.steps
    if phase.samples is not None:
        return math.ceil(phase.samples / phase.batch)
    if phase.epochs is not None:
        return math.ceil(samples_of_epochs(phase.epochs, draws.epoch_sizes) / phase.batch)
    assert phase.tokens is not None
    return math.ceil(phase.tokens / (draws.mean_tokens * phase.batch))


def samples_of_epochs(epochs: float, sizes: Sequence[int]) -> float:
    """Sequences in so many epochs, when epoch e has `sizes[e mod len(sizes)]` of them."""
    whole, part = int(epochs), epochs - int(epochs)
    return sum(sizes[e % len(sizes)] for e in range(whole)) + part * sizes[whole % len(sizes)]
