"""The loader interface: returns global step k of a phase, a pure function of (artifact, settings, k, rank, world).

Loaders keep no state between steps, so resuming means requesting the next step, and the examples of a step are the same
for any number of ranks and any micro-batch size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from bertwright.examples.batch import MicroBatch
from bertwright.examples.batch_sizes import BatchSizes
from bertwright.examples.config import MaskingConfig, MicroBatching
from bertwright.examples.packing import Assignment

AT_ONCE = 512
"""Sequences collated together: enough to hide numpy's call overhead, few enough to stay in the CPU cache."""


@dataclass(frozen=True)
class LoaderSettings:
    """The batch settings of a training phase."""

    length: int
    """Maximum length of an example, special tokens included (tokens): the length the plans were built for."""
    masking: MaskingConfig
    """Which tokens are predicted."""
    global_batch: int
    """Examples per step over all ranks, after the batch warm-up."""
    micro_batching: MicroBatching
    """How a rank's examples are divided into micro-batches."""
    seed: int
    phase: str
    """Name of the phase; each phase draws a different order and different masks."""
    batch_warmup: tuple[tuple[int, int], ...] = ()
    """How the batch grows to `global_batch`, as pairs [step, examples]; empty: it always has that size."""

    @property
    def batches(self) -> BatchSizes:
        """The batch size of each step over all ranks."""
        return BatchSizes(self.global_batch, self.batch_warmup)

    def with_micro_batch(self, micro_batch: int) -> LoaderSettings:
        """The same settings with micro-batches of at most `micro_batch` examples (or rows)."""
        return replace(self, micro_batching=replace(self.micro_batching, micro_batch=micro_batch))


class StepCounts(NamedTuple):
    """Predictions and tokens of a step."""

    predictions: int
    """Masked tokens to be predicted."""
    pairs: int
    """Labelled pairs of segments."""
    tokens: int
    """Tokens, without padding."""
    sequences: int = 0
    """Labelled sequences, as in classification."""


class Loader(Protocol):
    """The training batches of one phase, from any source."""

    @property
    def settings(self) -> LoaderSettings:
        """The batch settings of the phase."""

    @property
    def epoch_sizes(self) -> list[int]:
        """Examples of epoch 0, 1, ...; after the last one they repeat."""

    @property
    def mean_tokens(self) -> float:
        """Mean length of an example, special tokens included."""

    def step(self, step: int, rank: int = 0, world: int = 1) -> list[MicroBatch]:
        """The micro-batches of `rank` in global step `step` (from 0); every rank has the same number of them."""

    def counts(self, step: int, rank: int = 0, world: int = 1) -> StepCounts:
        """The counts of `rank` in `step`."""

    def with_micro_batch(self, micro_batch: int) -> Loader:
        """The same steps in micro-batches of at most `micro_batch` examples (or rows); step counts do not change."""


def together(assignments: list[Assignment]) -> Iterator[list[Assignment]]:
    """Yield groups of micro-batches to collate together: at most `AT_ONCE` examples, but at least one micro-batch."""
    group: list[Assignment] = []
    for assignment in assignments:
        if group and sum(len(s.examples) for s in group) + len(assignment.examples) > AT_ONCE:
            yield group
            group = []
        group.append(assignment)
    yield group
