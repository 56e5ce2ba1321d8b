"""The amount of training in a recipe: steps, sequences and tokens of each phase, and how its steps are split per
rank."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from bertwright.estimate.known_data import Data, examples_of, sequences_seen, steps_of
from bertwright.examples.sequences import Sequences
from bertwright.model.config import NetworkConfig
from bertwright.recipe import Recipe
from bertwright.train.memory.kept_numbers import Pass
from bertwright.train.memory.rank_memory import (
    Computing,
    computing_of,
    expected_maximum,
    fitting_sequences,
    largest_pass,
    micro_batches,
    micro_sequences,
)
from bertwright.train.settings.phase_config import PhaseConfig

UNKNOWN_MEMORY = 16e9
"""Bytes of a device of unknown memory: those of a T4, the smallest GPU with tensor cores, so that a micro-batch that is
found by rule is too small rather than too large."""


@dataclass(frozen=True)
class PhaseWork:
    """The work of one phase, resolved to steps of one rank."""

    index: int
    phase: PhaseConfig
    """With `auto` resolved to the machine's micro-batch."""
    steps: int | None
    """None if the length is in passes over examples whose number is not known."""
    sequences: int | None
    """Over all steps and ranks."""
    examples: Sequences
    """The examples that are read."""

    @property
    def epochs(self) -> float | None:
        """Passes of the phase over its examples; None if their number is not known."""
        return None if self.sequences is None else self.examples.epochs(self.sequences)

    @property
    def only_rows(self) -> bool:
        """Whether nothing but the rows of new entries is trained."""
        return self.phase.trains == "new-rows"

    @property
    def mean_length(self) -> float:
        """Mean number of real tokens per sequence."""
        return self.examples.mean_length

    @property
    def tokens(self) -> float | None:
        """Real tokens over all steps."""
        return None if self.sequences is None else self.sequences * self.mean_length

    def micro_batches(self, ranks: int) -> int:
        """Forward passes per step on each rank at full batch size."""
        return micro_batches(self.phase, ranks, self.mean_length)

    def micro_sequences(self, ranks: int) -> int:
        """Mean number of sequences per forward pass."""
        return micro_sequences(self.phase, ranks, self.mean_length)

    def largest_pass(self, computing: Computing) -> Pass:
        """The largest forward pass to be expected on a rank over all its steps."""
        return largest_pass(self.phase, computing, self.examples, self.steps)

    def row(self, sequences: float) -> float:
        """Expected length of the longest row of a pass of `sequences` sequences, in tokens."""
        if self.phase.packing:
            return float(self.phase.length)
        longest = self.mean_length + self.examples.deviation * expected_maximum(sequences)
        return min(float(self.examples.longest), longest)

    @property
    def predictions(self) -> float:
        """Masked tokens per sequence."""
        masking = self.phase.masking
        drawn = masking.rate_at(0) * self.mean_length
        return drawn if masking.count == "bernoulli" else min(float(masking.most(self.phase.length)), drawn + 1)


def works_of(recipe: Recipe, data: Data, ranks: int, gpu: bool, memory: float) -> list[PhaseWork]:
    """The work of each phase on `ranks` ranks with GPUs or without, of `memory` bytes each (0: not known)."""
    computing = computing_of(recipe.train, recipe.optim, ranks, gpu)
    network, limit = recipe.network(), recipe.train.memory_limit_gb * 1e9 or memory or UNKNOWN_MEMORY
    works = (phase_work(recipe, index, data) for index in range(len(recipe.train.phases)))
    return [fit_micro_batch(work, network, computing, limit) for work in works]


def phase_work(recipe: Recipe, index: int, data: Data) -> PhaseWork:
    """The work of phase `index` of the recipe, given what is known about the data."""
    phase = recipe.train.phases[index]
    examples = examples_of(recipe, index, data)
    steps = steps_of(phase, examples)
    steps = steps if steps is None else min(steps, phase.end_after or steps)
    return PhaseWork(index, phase, steps, sequences_seen(phase, examples), examples)


def fit_micro_batch(work: PhaseWork, network: NetworkConfig, computing: Computing, memory: float) -> PhaseWork:
    """The same work with `auto` resolved to the micro-batch that fits into `memory` bytes."""
    if work.phase.micro_batch != "auto":
        return work
    # An example longer than the phase allows has several sequences.
    each = math.ceil(work.examples.longest / work.phase.length)
    size = fitting_sequences(network, work.phase, computing, memory, max(each, 1))
    return replace(work, phase=work.phase.model_copy(update={"micro_batch": size}))
