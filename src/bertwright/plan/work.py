"""The amount of training in a recipe: steps, sequences and tokens of each phase, and how its steps are split per
rank."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bertwright.check.lengths import of_phase
from bertwright.examples.batch_sizes import BatchSizes
from bertwright.examples.sequences import Sequences
from bertwright.model.config import NetworkConfig
from bertwright.plan.data import Data
from bertwright.recipe import Recipe
from bertwright.train.pass_sizes import Pass
from bertwright.train.passes import expected_maximum, largest_pass, micro_batches, micro_sequences
from bertwright.train.phase_config import PhaseConfig
from bertwright.train.sizes import Computing, fitting_sequences


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
    repeats: float | None
    """How often each example of all passes is read; None if not known."""

    @property
    def epochs(self) -> float | None:
        """Passes of the phase over its examples; None if their number is not known."""
        passes = self.examples.per_pass
        return None if self.sequences is None or not sum(passes) else self.sequences * len(passes) / sum(passes)

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


def phase_work(recipe: Recipe, index: int, data: Data) -> PhaseWork:
    """The work of phase `index` of the recipe, given what is known about the data."""
    phase = recipe.train.phases[index]
    examples = _examples(recipe, index, data)
    steps = _steps(phase, examples)
    steps = steps if steps is None else min(steps, phase.end_after or steps)
    seen = None if steps is None else BatchSizes(phase.batch, phase.batch_warmup).before(steps)
    there = sum(examples.per_pass)
    repeats = seen / there if there and seen is not None else None
    return PhaseWork(index, phase, steps, seen, examples, repeats)


def fitted(work: PhaseWork, network: NetworkConfig, computing: Computing, memory: float) -> PhaseWork:
    """The same work with `auto` resolved to the micro-batch that fits into `memory` bytes."""
    if work.phase.micro_batch != "auto":
        return work
    size = fitting_sequences(network, work.phase, computing, memory)
    return replace(work, phase=work.phase.model_copy(update={"micro_batch": size}))


def _examples(recipe: Recipe, index: int, data: Data) -> Sequences:
    length = recipe.train.phases[index].length
    return of_phase(recipe, index, data.sets, data.imported) or Sequences.guessed((), 0.95 * length, length)


def _steps(phase: PhaseConfig, examples: Sequences) -> int | None:
    """The phase's length in optimizer steps; None if it is in passes over examples whose number is not known."""
    batches = BatchSizes(phase.batch, phase.batch_warmup)
    if phase.steps is not None:
        return phase.steps
    if phase.samples is not None:
        return batches.steps_of(phase.samples)
    if phase.tokens is not None:
        return batches.steps_of(phase.tokens, examples.mean_length)
    assert phase.epochs is not None
    if not examples.per_pass:
        return None
    whole, part = int(phase.epochs), phase.epochs % 1
    passes = examples.per_pass
    # As in `train.phases.samples_of_epochs`: epoch e reads pass e modulo the number of passes.
    total = sum(passes[e % len(passes)] for e in range(whole)) + part * passes[whole % len(passes)]
    return batches.steps_of(total)
