"""The training batches of a phase from store and plans.

Rows are located by their index in the phase alone, so a step has the same rows for any number of ranks and any
micro-batch size.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bertwright.core.artifact import Artifact
from bertwright.core.rng import fold, key
from bertwright.examples.batch import MicroBatch
from bertwright.examples.collate import Rows, collate, concatenate, rows_of, split
from bertwright.examples.config import PlanSet
from bertwright.examples.documents import members_of
from bertwright.examples.loader import LoaderSettings, StepCounts, together
from bertwright.examples.masking import Masking
from bertwright.examples.packing import Assignment, assign_to_ranks
from bertwright.examples.plans import UNLABELLED, Epochs, Plans, check_plans
from bertwright.examples.store import Store, refuse_cut

BLOCK = 1 << 20
"""Plan rows read at a time."""


class PlanLoader:
    """The training batches of one phase, from store and plans."""

    def __init__(self, store: Store, plans: Plans, settings: LoaderSettings) -> None:
        self.settings = settings
        self._store, self._plans = store, plans
        self._epochs = Epochs(plans.sizes, settings.seed, settings.phase)

    @property
    def epoch_sizes(self) -> list[int]:
        """Examples of epoch 0, 1, ...; after the last one they repeat."""
        return [int(size) for size in self._plans.sizes]

    @property
    def mean_tokens(self) -> float:
        """Mean length of an example of the first pass, special tokens included."""
        plan, total = self._plans.rows[0], 0
        for start in range(0, len(plan), BLOCK):  # the plan of a large corpus may not fit in memory
            rows = plan[start : start + BLOCK]
            specials = np.where(rows["b_count"] > 0, 3, 2) + rows["breaks"]
            counts = rows["a_count"].astype(np.int64) + rows["b_count"] + specials
            total += int(np.minimum(counts, self.settings.length).sum())
        return total / len(plan)

    @property
    def total(self) -> int:
        """Examples of all passes together."""
        return sum(self.epoch_sizes)

    def examples(self, first: int, stop: int) -> MicroBatch:
        """The examples `first` to `stop` of the phase, in order, as one batch; all with the mask rate of the first."""
        masking = self._masking(self.settings.batches.step_of(first))
        return collate(self._rows(first, stop), self.settings.length, self._store, masking)

    def step(self, step: int, rank: int = 0, world: int = 1) -> list[MicroBatch]:
        """The micro-batches of `rank` in global step `step` (from 0); every rank has the same number of them."""
        rows = self._rows(*self._bounds(step))
        return self._collated(rows, self._assignments(rows, rank, world), self._masking(step))

    def counts(self, step: int, rank: int = 0, world: int = 1) -> StepCounts:
        """The counts of `rank` in `step`, from the plan alone where it determines them."""
        rows, masking = self._rows(*self._bounds(step)), self._masking(step)
        assigned = self._assignments(rows, rank, world)
        own_rows = rows[np.concatenate([assignment.examples for assignment in assigned])]
        lengths = own_rows.lengths(self.settings.length)
        # Needed a step ahead: the loss is divided by the sums over all ranks before the first backward pass.
        if masking.counted:
            predictions = int(masking.counts(lengths, own_rows.specials).sum())
        else:
            predictions = sum(batch.counts.predictions for batch in self._collated(rows, assigned, masking))
        pairs = (own_rows.b_count > 0) & (own_rows.label != UNLABELLED)
        return StepCounts(predictions, int(pairs.sum()), int(lengths.sum()))

    def with_micro_batch(self, micro_batch: int) -> PlanLoader:
        """As `Loader.with_micro_batch`."""
        return PlanLoader(self._store, self._plans, self.settings.with_micro_batch(micro_batch))

    def _masking(self, step: int) -> Masking:
        config = self.settings.masking
        return Masking(config, config.rate_at(step), config.most(self.settings.length), self._store.vocabulary)

    def _bounds(self, step: int) -> tuple[int, int]:
        # Independent of ranks and micro-batches, so that a run can be resumed anywhere.
        return self.settings.batches.before(step), self.settings.batches.before(step + 1)

    def _rows(self, first: int, stop: int) -> Rows:
        settings, store = self.settings, self._store
        # Checked at each step: a file may be truncated while training runs, for days.
        refuse_cut([store.tokens, store.sentences, store.documents, store.starts, store.hashes, *self._plans.rows])
        epochs = self._epochs.locate(np.arange(first, stop))
        parts = []
        for epoch, number, rows in epochs:
            # Static masks belong to a pass of the plan and repeat with it; other masks are new in every epoch.
            stream = ("pass", number) if settings.masking.static else ("draw", epoch)
            row_keys = fold(key(settings.seed, stream[0], settings.phase, stream[1]), rows)
            parts.append(rows_of(self._store, self._plans, number, rows, row_keys))
        return concatenate(parts)

    def _assignments(self, rows: Rows, rank: int, world: int) -> list[Assignment]:
        return assign_to_ranks(rows.lengths(self.settings.length), rank, world, self.settings.micro_batching)

    def _collated(self, rows: Rows, assignments: list[Assignment], masking: Masking) -> list[MicroBatch]:
        batches: list[MicroBatch] = []
        for group in together(assignments):
            examples = np.concatenate([assignment.examples for assignment in group])
            batch = collate(rows[examples], self.settings.length, self._store, masking)
            batches += split(batch, [assignment.row_sizes for assignment in group])
        return batches


def open_loader(
    examples: Artifact, plan_set: PlanSet, settings: LoaderSettings, vocab: Artifact | None = None, within: str = ""
) -> PlanLoader:
    """The training batches of a phase from an examples artifact.

    Raises `ArtifactError` if it was made with another vocabulary than `vocab`. `within` as for `Store.open`.
    """
    store, plans = Store.open(examples, vocab=vocab, within=within), Plans.open(examples, plan_set, within=within)
    if plan_set.document_range != (0.0, 1.0) and examples.manifest["config"]["examples"]["plan"] == "full-sentences":
        store = replace(store, members=members_of(store.hashes, plan_set.document_range))
    check_plans(plans, store)
    return PlanLoader(store, plans, settings)
