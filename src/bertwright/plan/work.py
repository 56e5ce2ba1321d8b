"""The amount of training in a recipe: steps, sequences and tokens of each phase, and how its steps are split per
rank."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

from bertwright.core.artifact import MANIFEST, open_artifact
from bertwright.examples.batch_sizes import BatchSizes
from bertwright.examples.config import PlanSet
from bertwright.model.config import NetworkConfig
from bertwright.plan.data import Data
from bertwright.plan.sequences import Sequences
from bertwright.recipe import Recipe
from bertwright.train.pass_sizes import Pass
from bertwright.train.phase_config import PhaseConfig
from bertwright.train.sizes import Computing, fitting_sequences, share_of


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
    mean_length: float
    """Mean number of real tokens per sequence."""
    deviation: float
    """Standard deviation of the sequence lengths, in tokens."""
    repeats: float | None
    """How often each example of all passes is read; None if not known."""

    @property
    def tokens(self) -> float | None:
        """Real tokens over all steps."""
        return None if self.sequences is None else self.sequences * self.mean_length

    def micro_batches(self, ranks: int) -> int:
        """Forward passes per step on each rank at full batch size."""
        share, size = share_of(self.phase, ranks), self.phase.micro_batching
        if size.micro_tokens:
            return max(1, math.ceil(share * self.mean_length / size.micro_tokens))
        if size.row_tokens:  # rows of several sequences, nearly full
            return max(1, math.ceil(share * self.mean_length / size.row_tokens / size.micro_batch))
        return max(1, math.ceil(share / size.micro_batch))

    def micro_sequences(self, ranks: int) -> int:
        """Mean number of sequences per forward pass."""
        return max(1, round(share_of(self.phase, ranks) / self.micro_batches(ranks)))

    def largest_pass(self, ranks: int) -> Pass:
        """The largest forward pass to be expected on a rank over all its steps."""
        phase, sequences, normal = self.phase, float(self.micro_sequences(ranks)), NormalDist()
        if phase.micro_batching.micro_tokens or phase.micro_batching.row_tokens:
            rows = 0 if phase.micro_tokens else min(phase.micro_batching.micro_batch, share_of(phase, ranks))
            full = Pass.full(rows, phase.length, phase.micro_tokens)
            return replace(full, pairs=full.tokens * self._squares / self.mean_length)
        if (parts := self.micro_batches(ranks)) > 1:
            # Sequences are grouped by length, so the longest of a step share one pass: the mean of the upper tail of a
            # normal distribution.
            share = 1 / parts
            mean = self.mean_length + self.deviation * normal.pdf(normal.inv_cdf(1 - share)) / share
        else:
            # The expected maximum over all steps of the mean length of a batch (Blom 1958).
            steps = max(1, self.steps or 1000)
            often = normal.inv_cdf((steps - 0.375) / (steps + 0.25))
            mean = self.mean_length + max(0.0, often) * self.deviation / math.sqrt(sequences)
        tokens = sequences * min(mean, float(phase.length))
        return Pass(sequences, tokens, phase.length, tokens * max(mean, self._squares / self.mean_length))

    @property
    def _squares(self) -> float:
        """The mean square of the sequence lengths."""
        return self.mean_length**2 + self.deviation**2

    @property
    def predictions(self) -> float:
        """Masked tokens per sequence."""
        masking = self.phase.masking
        drawn = masking.rate_at(0) * self.mean_length
        return drawn if masking.count == "bernoulli" else min(float(masking.most(self.phase.length)), drawn + 1)


def phase_work(recipe: Recipe, index: int, data: Data) -> PhaseWork:
    """The work of phase `index` of the recipe, given what is known about the data."""
    phase = recipe.train.phases[index]
    sequences = _sequences(recipe, index, data)
    steps = _steps(phase, sequences)
    steps = steps if steps is None else min(steps, phase.end_after or steps)
    seen = None if steps is None else BatchSizes(phase.batch, phase.batch_warmup).before(steps)
    there = sum(sequences.per_pass)
    repeats = seen / there if there and seen is not None else None
    return PhaseWork(index, phase, steps, seen, sequences.mean_length, sequences.deviation, repeats)


def fitted(work: PhaseWork, network: NetworkConfig, computing: Computing, memory: float) -> PhaseWork:
    """The same work with `auto` resolved to the micro-batch that fits into `memory` bytes."""
    if work.phase.micro_batch != "auto":
        return work
    size = fitting_sequences(network, work.phase, computing, memory)
    return replace(work, phase=work.phase.model_copy(update={"micro_batch": size}))


def _sequences(recipe: Recipe, index: int, data: Data) -> Sequences:
    phase = recipe.train.phases[index]
    name = PlanSet(length=phase.length, document_range=phase.document_range).name
    if phase.data is None:
        return data.sets.get(name) or Sequences.guessed((), 0.95 * phase.length, phase.length)
    if index in data.imported:
        return data.imported[index]
    if (phase.data / MANIFEST).is_file():
        train = open_artifact(phase.data, "examples").counts["train"]
        if name in train["rows"]:
            return Sequences.counted(train["rows"][name], train["sequences"][name], phase.length)
    return Sequences.guessed((), 0.95 * phase.length, phase.length)


def _steps(phase: PhaseConfig, sequences: Sequences) -> int | None:
    """The phase's length in optimizer steps; None if it is in passes over examples whose number is not known."""
    batches = BatchSizes(phase.batch, phase.batch_warmup)
    if phase.steps is not None:
        return phase.steps
    if phase.samples is not None:
        return batches.steps_of(phase.samples)
    if phase.tokens is not None:
        return batches.steps_of(phase.tokens, sequences.mean_length)
    assert phase.epochs is not None
    if not sequences.per_pass:
        return None
    whole, part = int(phase.epochs), phase.epochs % 1
    passes = sequences.per_pass
    # As in `train.phases.samples_of_epochs`: epoch e reads pass e modulo the number of passes.
    total = sum(passes[e % len(passes)] for e in range(whole)) + part * passes[whole % len(passes)]
    return batches.steps_of(total)
