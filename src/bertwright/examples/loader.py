"""What a loader gives: global step k of a phase, a pure function of (artifact, settings, k, rank, world).

Nothing is remembered between steps, so resuming is asking for the next step, and the examples of a step are the
same for any number of ranks and any micro-batch size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from bertwright.examples.batch import MicroBatch
from bertwright.examples.batch_sizes import BatchSizes
from bertwright.examples.config import MicroBatching
from bertwright.examples.masking_config import MaskingConfig
from bertwright.examples.packing import Assignment

AT_ONCE = 512
"""Sequences collated together: enough to hide numpy's call overhead, few enough to stay in the cache."""


@dataclass(frozen=True)
class LoaderSettings:
    """What a training phase decides about its batches."""

    length: int
    """Longest example, special tokens included (tokens): the length the plans were made for."""
    masking: MaskingConfig
    """Which tokens are predicted."""
    global_batch: int
    """Examples of one step over all ranks; while the batch grows, of the last size."""
    micro_batching: MicroBatching
    """How a rank's examples become micro-batches."""
    seed: int
    phase: str
    """Name of the phase: phases draw different orders and masks."""
    batch_warmup: tuple[tuple[int, int], ...] = ()
    """How the batch grows to `global_batch`, as pairs [step, examples]; empty: it always has that size."""

    @property
    def batches(self) -> BatchSizes:
        """The examples of each step over all ranks."""
        return BatchSizes(self.global_batch, self.batch_warmup)

    def with_micro_batch(self, micro_batch: int) -> LoaderSettings:
        """The same with micro-batches of at most so many examples (or rows)."""
        return replace(self, micro_batching=replace(self.micro_batching, micro_batch=micro_batch))


class StepCounts(NamedTuple):
    """What a step predicts and reads."""

    predictions: int
    """Masked tokens to be predicted."""
    pairs: int
    """Pairs of segments with a label."""
    tokens: int
    """Real tokens."""
    sequences: int = 0
    """Sequences with a label of their own, as a classification has."""


class Loader(Protocol):
    """The training batches of one phase, whatever they are drawn from."""

    @property
    def settings(self) -> LoaderSettings:
        """What the phase decides about its batches."""

    @property
    def epoch_sizes(self) -> list[int]:
        """Examples of epoch 0, 1, ...; after the last one they repeat."""

    @property
    def mean_tokens(self) -> float:
        """Mean length of an example, special tokens included."""

    def step(self, step: int, rank: int = 0, world: int = 1) -> list[MicroBatch]:
        """The micro-batches of `rank` in global step `step` (from 0); their number is the same on all ranks."""

    def counts(self, step: int, rank: int = 0, world: int = 1) -> StepCounts:
        """What `rank` predicts and reads in `step`."""

    def with_micro_batch(self, micro_batch: int) -> Loader:
        """The same steps in micro-batches of at most so many examples (or rows); counts of ranks stay as they are."""


def together(assignments: list[Assignment]) -> Iterator[list[Assignment]]:
    """Micro-batches to collate together: at most `AT_ONCE` examples, but at least one micro-batch."""
    group: list[Assignment] = []
    for assignment in assignments:
        if group and sum(len(s.examples) for s in group) + len(assignment.examples) > AT_ONCE:
            yield group
            group = []
        group.append(assignment)
    yield group
