"""Examples from store and plans: opens those that the stage `examples` made, for training or held out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from bertwright.core.artifact import Artifact
from bertwright.examples.batch import MicroBatch
from bertwright.examples.collate import Rows, collate, rows_of
from bertwright.examples.config import MaskingConfig, PlanSet
from bertwright.examples.documents import members_of
from bertwright.examples.example_set import ExampleSet, Ids, Selection, StepCounts
from bertwright.examples.loader import Heldout, Loader, LoaderSettings
from bertwright.examples.masking import Masking
from bertwright.examples.plans import UNLABELLED, Plans, check_plans
from bertwright.examples.store import Store


@dataclass(frozen=True)
class PlannedExamples(ExampleSet):
    """The examples that plans describe; see `ExampleSet`."""

    store: Store
    plans: Plans
    length: int
    """Maximum length of an example, special tokens included (tokens)."""
    masking: MaskingConfig

    @property
    def sizes(self) -> list[int]:
        """As `ExampleSet.sizes`."""
        return [int(size) for size in self.plans.sizes]

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """As `ExampleSet.arrays`: of any shape."""
        store = self.store
        return [store.tokens, store.sentences, store.documents, store.starts, store.hashes, *self.plans.rows]

    def lengths(self, some: Selection) -> Ids:
        """As `ExampleSet.lengths`: [N] tokens of each example."""
        return self._rows(some).lengths(self.length)

    def batch(self, some: Selection) -> MicroBatch:
        """As `ExampleSet.batch`."""
        return collate(self._rows(some), self.length, self.store, self._masking(some))

    def counts(self, some: Selection) -> StepCounts:
        """As `ExampleSet.counts`, from the plan alone where it determines them."""
        rows, masking = self._rows(some), self._masking(some)
        if not masking.counted:
            return super().counts(some)
        lengths = rows.lengths(self.length)
        predictions = masking.counts(lengths, rows.specials)
        return StepCounts(int(predictions.sum()), int(rows.labelled.sum()), int(lengths.sum()))

    def _rows(self, some: Selection) -> Rows:
        return rows_of(self.store, self.plans, some.passes, some.rows, some.keys)

    def _masking(self, some: Selection) -> Masking:
        return Masking.at(self.masking, some.step, self.length, self.store.vocabulary)


def open_loader(
    examples: Artifact, plan_set: PlanSet, settings: LoaderSettings, vocab: Artifact | None = None, within: str = ""
) -> Loader:
    """The training batches of a phase from an examples artifact.

    Raises `ArtifactError` if it was made with another vocabulary than `vocab`. `within` as for `Store.open`.
    """
    store, plans = Store.open(examples, vocab=vocab, within=within), Plans.open(examples, plan_set, within=within)
    if plan_set.document_range != (0.0, 1.0) and examples.manifest["config"]["examples"]["plan"] == "full-sentences":
        store = replace(store, members=members_of(store.hashes, plan_set.document_range))
    check_plans(plans, store)
    return Loader(PlannedExamples(store, plans, settings.length, settings.masking), settings)


def open_heldout(
    examples: Artifact, length: int, max_predictions: int, mask_rate: float, most: int | None = None
) -> Heldout:
    """The held-out examples of a length, at most `most` of them (`Heldout.evenly`)."""
    store, plans = Store.open(examples, "heldout"), Plans.open(examples, PlanSet(length=length), "heldout")
    check_plans(plans, store)
    # Otherwise the defaults, whatever masking the phase uses, so that scores are comparable.
    masking = MaskingConfig(rate=mask_rate, max_predictions=max_predictions)
    return Heldout.evenly(PlannedExamples(store, plans, length, masking), most)


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


def with_labels(heldout: Heldout) -> Heldout:
    """Those of the held-out examples, of plans, that are pairs with a label."""
    assert isinstance(heldout.examples, PlannedExamples)
    plan = heldout.examples.plans.rows[0][heldout.rows]
    return replace(heldout, rows=heldout.rows[(plan["b_count"] > 0) & (plan["label"] != UNLABELLED)])
