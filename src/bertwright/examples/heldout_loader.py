"""The held-out examples of a length, in plan order and with fixed masks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bertwright.core.artifact import Artifact
from bertwright.core.rng import fold, key
from bertwright.examples.batch import MicroBatch
from bertwright.examples.collate import collate, rows_of
from bertwright.examples.config import MaskingConfig, PlanSet
from bertwright.examples.masking import Ids, Masking
from bertwright.examples.plans import UNLABELLED, Plans, check_plans
from bertwright.examples.store import Store


@dataclass(frozen=True)
class Heldout:
    """The held-out examples of a length in plan order.

    Masks are fixed: they depend only on the row and the settings, not on seed or phase, and random replacements are
    always words, so scores are comparable.
    """

    store: Store
    plans: Plans
    masking: Masking
    length: int
    rows: Ids
    """[N] the plan rows to use."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def labelled(self) -> Heldout:
        """Those of the examples that are pairs with a label."""
        plan = self.plans.rows[0][self.rows]
        return replace(self, rows=self.rows[(plan["b_count"] > 0) & (plan["label"] != UNLABELLED)])

    def batches(self, micro_batch: int, first: int = 0, stop: int | None = None) -> Iterator[MicroBatch]:
        """Yield the examples `first` to `stop` once, in micro-batches of at most `micro_batch` examples."""
        chosen = self.rows[first:stop]
        for start in range(0, len(chosen), micro_batch):
            rows = chosen[start : start + micro_batch]
            # The key contains neither seed nor phase, so that all runs are scored on the same masks.
            columns = rows_of(self.store, self.plans, 0, rows, fold(key("held-out masks"), rows))
            yield collate(columns, self.length, self.store, self.masking)


def open_heldout(
    examples: Artifact, length: int, max_predictions: int, mask_rate: float, most: int | None = None
) -> Heldout:
    """The held-out examples of a length, at most `most` of them.

    If there are n > most examples, takes example int(i * (n / most)) for each i: the rule of MLPerf's evaluation set
    (mlcommons/training, pick_eval_samples.py), rounding included.
    """
    store, plans = Store.open(examples, "heldout"), Plans.open(examples, PlanSet(length=length), "heldout")
    check_plans(plans, store)
    # The defaults, whatever masking the phase uses, so that scores are comparable.
    masking = Masking(MaskingConfig(), mask_rate, max_predictions, store.vocabulary)
    total = int(plans.sizes[0])
    taken = total if most is None else min(most, total)
    rows = (np.arange(taken) * (total / max(taken, 1))).astype(np.int64)
    return Heldout(store, plans, masking, length, rows)


def heldout_batches(
    examples: Artifact,
    length: int,
    max_predictions: int,
    mask_rate: float,
    micro_batch: int,
    most: int | None = None,
) -> Iterator[MicroBatch]:
    """Yield the held-out examples of a length once, in micro-batches; see `open_heldout`."""
    yield from open_heldout(examples, length, max_predictions, mask_rate, most).batches(micro_batch)
