"""The loader: global step k of a phase, a pure function of (examples, settings, k, rank, world).

It keeps no state between steps, so resuming means requesting the next step. Examples are located by their index in the
phase alone, so those of a step are the same for any number of ranks and any micro-batch size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.core.rng import fold, key
from bertwright.examples.batch import MicroBatch, split
from bertwright.examples.config import MaskingConfig, MicroBatching
from bertwright.examples.example_set import AT_ONCE, ExampleSet, Ids, Selection, StepCounts
from bertwright.examples.packing import Assignment, assign_to_ranks
from bertwright.examples.padding import Room
from bertwright.examples.sequences import BatchSizes
from bertwright.examples.shuffle import Permutation
from bertwright.examples.store import refuse_cut


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


class Loader:
    """The training batches of one phase."""

    def __init__(self, examples: ExampleSet, settings: LoaderSettings) -> None:
        self.examples, self.settings = examples, settings
        self._epochs = Epochs(np.array(examples.sizes), settings.seed, settings.phase)
        self._rooms: dict[int, Room] = {}

    @property
    def total(self) -> int:
        """Examples of all passes together."""
        return sum(self.examples.sizes)

    def step(self, step: int, rank: int = 0, world: int = 1) -> list[MicroBatch]:
        """The micro-batches of `rank` in global step `step` (from 0); every rank has the same number of them."""
        some = self._of_step(step)
        batches: list[MicroBatch] = []
        for group in _together(self._assignments(some, rank, world)):
            batch = self.examples.batch(some[np.concatenate([assignment.examples for assignment in group])])
            batches += split(batch, [self._rows(some, assignment) for assignment in group])
        return batches

    def _rows(self, some: Selection, assignment: Assignment) -> Ids:
        """[R] the number of sequences in each row of a micro-batch; unless rows are packed, each has one."""
        if self.examples.most_sequences == 1:
            return assignment.row_sizes
        return np.ones(int(self.examples.sequences(some[assignment.examples]).sum()), np.int64)

    def counts(self, step: int, rank: int = 0, world: int = 1) -> StepCounts:
        """The counts of `rank` in `step`.

        Needed a step ahead: the loss is divided by the sums over all ranks before the first backward pass.
        """
        some = self._of_step(step)
        own = [assignment.examples for assignment in self._assignments(some, rank, world)]
        return self.examples.counts(some[np.concatenate(own)])

    def batch(self, first: int, stop: int) -> MicroBatch:
        """The examples `first` to `stop` of the phase, in order, as one batch; all with the mask rate of the first."""
        return self.examples.batch(self._selection(first, stop, self.settings.batches.step_of(first)))

    def with_micro_batch(self, micro_batch: int) -> Loader:
        """The same steps in micro-batches of at most `micro_batch` examples (or rows); step counts do not change."""
        batching = replace(self.settings.micro_batching, micro_batch=micro_batch)
        return Loader(self.examples, replace(self.settings, micro_batching=batching))

    def in_full_rows(self, world: int, rows: int, packing: bool) -> Loader:
        """The same steps in micro-batches of full rows, for networks that need one shape: at most `rows` in each, and
        as many as divide those of a rank evenly.

        `packing`: rows of several examples, if these are one sequence each.
        """
        settings = self.settings
        row_tokens = settings.length if packing and self.examples.most_sequences == 1 else 0
        whole = MicroBatching(settings.global_batch, row_tokens)
        loader = Loader(self.examples, replace(settings, micro_batching=whole))
        most = max(len(all_rows.row_sizes) for _, (all_rows,) in loader._some_steps(world))
        passes = -(-most // rows)
        return Loader(self.examples, replace(settings, micro_batching=replace(whole, micro_batch=-(-most // passes))))

    def room(self, world: int = 1) -> Room:
        """The shape of the micro-batches of each of `world` ranks in full rows (`in_rows`).

        How many sequences and predictions they have depends on the examples: those of some steps are counted, and a
        margin is added. The same on all ranks.
        """
        if world not in self._rooms:
            settings = self.settings
            sequences = predictions = 0
            for some, assignments in self._some_steps(world):
                for own in (some[assignment.examples] for assignment in assignments):
                    sequences = max(sequences, int(self.examples.sequences(own).sum()))
                    predictions = max(predictions, self.examples.counts(own).predictions)
            batching = settings.micro_batching
            rows = min(batching.micro_batch, -(-settings.global_batch // world)) * self.examples.most_sequences
            # Rows filled last have the shortest examples, and most of them. Each row may need another to fill it up.
            sequences = rows + (_with_margin(5 * sequences // 4) if batching.row_tokens else rows)
            self._rooms[world] = Room(rows, settings.length, sequences, max(1, _with_margin(predictions)))
        return self._rooms[world]

    def _some_steps(self, world: int) -> Iterator[tuple[Selection, list[Assignment]]]:
        """Yield the examples of some steps of full size, with the highest mask rate, and the micro-batches of the first
        of `world` ranks."""
        batch = self.settings.global_batch
        step, _ = max(self.settings.masking.rates, key=lambda pair: pair[1])
        for number in range(min(max(1, _COUNTED // batch), _STEPS)):
            some = self._selection(number * batch, (number + 1) * batch, step)
            yield some, self._assignments(some, 0, world)

    def _of_step(self, step: int) -> Selection:
        # Checked at each step: a file may be truncated while training runs, for days.
        refuse_cut(self.examples.arrays)
        batches = self.settings.batches
        return self._selection(batches.before(step), batches.before(step + 1), step)

    def _selection(self, first: int, stop: int, step: int) -> Selection:
        settings, passes, rows, keys = self.settings, [], [], []
        for epoch, number, of_epoch in self._epochs.locate(np.arange(first, stop)):
            # Static masks belong to a pass and repeat with it; other masks are new in every epoch.
            stream = ("pass", number) if settings.masking.static else ("draw", epoch)
            keys.append(fold(key(settings.seed, stream[0], settings.phase, stream[1]), of_epoch))
            passes.append(np.full_like(of_epoch, number))
            rows.append(of_epoch)
        return Selection(np.concatenate(passes), np.concatenate(rows), np.concatenate(keys), step)

    def _assignments(self, some: Selection, rank: int, world: int) -> list[Assignment]:
        return assign_to_ranks(self.examples.lengths(some), rank, world, self.settings.micro_batching)


_COUNTED, _STEPS = 4096, 16
"""Examples, and steps, at most, whose sequences and predictions are counted; at least one step."""


def _with_margin(most: int) -> int:
    """The number that thousands of micro-batches do not exceed, if `most` is the largest of some."""
    return math.ceil(most * 25 / 24 + 2 * math.sqrt(most))


def _together(assignments: list[Assignment]) -> Iterator[list[Assignment]]:
    """Yield groups of micro-batches to collate together: at most `AT_ONCE` examples, but at least one micro-batch."""
    group: list[Assignment] = []
    for assignment in assignments:
        if group and sum(len(s.examples) for s in group) + len(assignment.examples) > AT_ONCE:
            yield group
            group = []
        group.append(assignment)
    yield group


@dataclass(frozen=True)
class Epochs:
    """The endless sequence of a phase's epochs; raises `DataError` if a pass has no rows.

    Epoch e takes pass e mod passes in its own permutation. Epochs are concatenated: with a constant global batch G,
    global step k takes rows [k*G, (k+1)*G) of the sequence, so a step may span the end of one epoch and the start of
    the next.
    """

    sizes: NDArray[np.int64]
    """[passes] number of rows of each pass, all above 0."""
    seed: int
    phase: str

    def __post_init__(self) -> None:
        if (self.sizes == 0).any():
            raise DataError(
                "a pass of the plans has no rows: no document falls into its share. Widen its document_range."
            )

    def locate(self, r: NDArray[np.int64]) -> list[tuple[int, int, NDArray[np.int64]]]:
        """The rows at increasing positions `r` [N] of the sequence, as (epoch, pass, rows [n]) in order."""
        sizes = self.sizes
        ends = np.cumsum(sizes)
        cycle, within = np.divmod(r, ends[-1])
        number = np.searchsorted(ends, within, side="right")
        epoch = cycle * len(sizes) + number
        position = within - (ends - sizes)[number]
        located = []
        # A step at an epoch boundary takes the end of one permutation and the start of the next.
        for e in np.unique(epoch):
            chosen, which = position[epoch == e], int(e) % len(sizes)
            order = _order(key(self.seed, "order", self.phase, int(e)), int(sizes[which]))
            located.append((int(e), which, order(chosen)))
        return located


@lru_cache(maxsize=4)
def _order(epoch_key: int, rows: int) -> Permutation:
    """Cached between steps, so that the block order of a large epoch is computed once."""
    return Permutation(epoch_key, rows)


@dataclass(frozen=True)
class Heldout:
    """Held-out examples in the order of their set.

    Masks are fixed: they depend only on the row and the settings of the set, not on seed or phase, so scores are
    comparable.
    """

    examples: ExampleSet
    rows: Ids
    """[N] the examples to use."""

    @classmethod
    def evenly(cls, examples: ExampleSet, most: int | None = None) -> Heldout:
        """All examples of a set, or at most `most` of them.

        If there are n > most examples, takes example int(i * (n / most)) for each i: the rule of MLPerf's evaluation
        set (mlcommons/training, pick_eval_samples.py), rounding included.
        """
        (total,) = examples.sizes
        taken = total if most is None else min(most, total)
        return cls(examples, (np.arange(taken) * (total / max(taken, 1))).astype(np.int64))

    def __len__(self) -> int:
        return len(self.rows)

    def batches(self, micro_batch: int, first: int = 0, stop: int | None = None) -> Iterator[MicroBatch]:
        """Yield the examples `first` to `stop` once, in micro-batches of at most `micro_batch` examples."""
        chosen = self.rows[first:stop]
        for start in range(0, len(chosen), micro_batch):
            rows = chosen[start : start + micro_batch]
            # The key contains neither seed nor phase, so that all runs are scored on the same masks.
            yield self.examples.batch(Selection.of(rows, fold(key("held-out masks"), rows)))
