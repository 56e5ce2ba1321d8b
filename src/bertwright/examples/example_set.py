"""Sets of examples: what a loader orders, divides and reads, and all that a new kind of examples has to define.

A kind of examples is a subclass of `ExampleSet`. What it learns from goes into the fields of `Batch`: labels of tokens
into `labels` at `prediction_positions`; labels of sequences into `sequence_labels`, of which a sequence may have
several, such as the first and the last token of an answer. An example may be several sequences, such as a question with
each of its choices, and each example another number of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import Bits
from bertwright.examples.batch import MicroBatch

AT_ONCE = 512
"""Examples collated together: enough to hide numpy's call overhead, few enough to stay in the CPU cache."""
_BLOCK = 1 << 20
"""Examples whose lengths are read at a time."""
Ids = NDArray[np.int64]


class StepCounts(NamedTuple):
    """What the loss of a step is averaged over."""

    predictions: int
    """Labelled tokens, such as masked ones."""
    sequences: int
    """Labelled sequences: pairs of segments, or texts with a class or a number. All choices of a question are one."""
    tokens: int
    """Tokens, without padding."""

    @property
    def pairs(self) -> int:
        """The labelled sequences, by their name in pre-training."""
        return self.sequences


@dataclass(frozen=True)
class Selection:
    """N examples of a set, in the order of a batch."""

    passes: Ids
    """[N] the pass that each is taken from."""
    rows: Ids
    """[N] the index of each in its pass."""
    keys: Bits
    """[N] the random key of each example's decisions, such as masks."""
    step: int = 0
    """The step of the phase that reads them, which determines the mask rate."""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: Ids | slice) -> Selection:
        return Selection(self.passes[which], self.rows[which], self.keys[which], self.step)

    @classmethod
    def of(cls, rows: Ids, keys: Bits | None = None) -> Selection:
        """The examples `rows` [N] of the first pass."""
        return cls(np.zeros_like(rows), rows, np.zeros(len(rows), np.uint64) if keys is None else keys)


class ExampleSet(ABC):
    """Examples of at most a fixed number of tokens, from which batches are built."""

    @property
    def most_sequences(self) -> int:
        """Sequences of an example, at most."""
        return 1

    def sequences(self, some: Selection) -> Ids:
        """[N] sequences of each example. They are consecutive in a batch, and always in the same micro-batch."""
        return np.ones(len(some), np.int64)

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """Examples of each pass; epoch e takes pass e modulo their number."""

    @property
    @abstractmethod
    def arrays(self) -> Iterable[NDArray[Any]]:
        """The memory-mapped arrays, of any shape, whose files are checked before each step."""

    @abstractmethod
    def lengths(self, some: Selection) -> Ids:
        """[N] tokens of each example, of all its sequences, special tokens included."""

    @abstractmethod
    def batch(self, some: Selection) -> MicroBatch:
        """The examples as one packed batch, each sequence in a row of its own."""

    def counts(self, some: Selection) -> StepCounts:
        """What a loss over the examples is averaged over; by building their batches, unless a subclass knows better."""
        predictions = sequences = tokens = 0
        for start in range(0, len(some), AT_ONCE):
            batch = self.batch(some[start : start + AT_ONCE])
            predictions += int(np.count_nonzero(batch.weights))
            sequences += int(np.count_nonzero(batch.sequence_weights))
            tokens += len(batch.token_ids)
        return StepCounts(predictions, sequences, tokens)

    @cached_property
    def mean_tokens(self) -> float:
        """Mean length of an example of the first pass, special tokens included."""
        size, total = self.sizes[0], 0
        for start in range(0, size, _BLOCK):  # the plan of a large corpus may not fit in memory
            rows = np.arange(start, min(start + _BLOCK, size))
            total += int(self.lengths(Selection.of(rows)).sum())
        return total / size
