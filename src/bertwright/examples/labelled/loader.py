"""Batches of labelled examples: the training batches of a phase, and the held-out batches.

As with plans, each epoch is a separate permutation of all examples, and a step depends only on (settings, step, rank,
world).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from bertwright.core.artifact import Artifact
from bertwright.examples.batch import MicroBatch
from bertwright.examples.collate import split
from bertwright.examples.labelled.data import Ids, LabelledSet
from bertwright.examples.loader import LoaderSettings, StepCounts, together
from bertwright.examples.packing import Assignment, assign_to_ranks
from bertwright.examples.plans import Epochs
from bertwright.examples.store import refuse_cut


class LabelledLoader:
    """The training batches of a phase; see `loader.Loader`."""

    def __init__(self, examples: LabelledSet, settings: LoaderSettings) -> None:
        self.settings = settings
        self._examples = examples
        self._epochs = Epochs(np.array(self.epoch_sizes), settings.seed, settings.phase)

    @property
    def epoch_sizes(self) -> list[int]:
        """The size of the only pass: every epoch takes all examples."""
        return [len(self._examples.arrays)]

    @cached_property
    def mean_tokens(self) -> float:
        """Mean length of an example, special tokens included."""
        return float(self._examples.lengths(np.arange(len(self._examples.arrays)), self.settings.length).mean())

    def step(self, step: int, rank: int = 0, world: int = 1) -> list[MicroBatch]:
        """The micro-batches of `rank` in global step `step` (from 0); every rank has the same number of them."""
        rows = self._rows(step)
        batches: list[MicroBatch] = []
        for group in together(self._assignments(rows, rank, world)):
            chosen = rows[np.concatenate([assignment.examples for assignment in group])]
            batch = self._examples.batch(chosen, self.settings.length)
            batches += split(batch, [assignment.row_sizes for assignment in group])
        return batches

    def counts(self, step: int, rank: int = 0, world: int = 1) -> StepCounts:
        """The counts of `rank` in `step`, from the lengths alone."""
        rows = self._rows(step)
        own = rows[np.concatenate([assignment.examples for assignment in self._assignments(rows, rank, world)])]
        tokens = int(self._examples.lengths(own, self.settings.length).sum())
        return StepCounts(predictions=0, pairs=0, tokens=tokens, sequences=len(own))

    def with_micro_batch(self, micro_batch: int) -> LabelledLoader:
        """As `Loader.with_micro_batch`."""
        return LabelledLoader(self._examples, self.settings.with_micro_batch(micro_batch))

    def _rows(self, step: int) -> Ids:
        # Checked at each step: a file may be truncated while training runs.
        refuse_cut(vars(self._examples.arrays).values())
        batches = self.settings.batches
        located = self._epochs.locate(np.arange(batches.before(step), batches.before(step + 1)))
        return np.concatenate([rows for _, _, rows in located])

    def _assignments(self, rows: Ids, rank: int, world: int) -> list[Assignment]:
        lengths = self._examples.lengths(rows, self.settings.length)
        return assign_to_ranks(lengths, rank, world, self.settings.micro_batching)


def open_labelled(examples: Artifact, settings: LoaderSettings, vocab: Artifact) -> LabelledLoader:
    """The training batches of a phase from the labelled texts of an examples artifact."""
    return LabelledLoader(LabelledSet.open(examples, "train", vocab), settings)


def heldout_labelled(
    examples: Artifact, length: int, micro_batch: int, most: int | None = None
) -> Iterator[MicroBatch]:
    """Yield the held-out examples once, truncated to `length`, in micro-batches; at most `most`, evenly spaced."""
    heldout = LabelledSet.open(examples, "heldout")
    total = len(heldout.arrays)
    taken = total if most is None else min(most, total)
    rows = (np.arange(taken) * (total / max(taken, 1))).astype(np.int64)
    for start in range(0, taken, micro_batch):
        yield heldout.batch(rows[start : start + micro_batch], length)
