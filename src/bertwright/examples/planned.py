"""Examples from store and plans, for training or held out: plan rows become sequences by truncation, [CLS] A [SEP] B
[SEP], and masking, vectorised over many rows at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact
from bertwright.core.rng import bits
from bertwright.examples.batch import MicroBatch
from bertwright.examples.config import MaskingConfig, PlanSet
from bertwright.examples.documents import documents_inside, members_of
from bertwright.examples.example_set import ExampleSet, Selection, StepCounts
from bertwright.examples.loader import Heldout, Loader, LoaderSettings
from bertwright.examples.masking import Ids, Keys, Masking
from bertwright.examples.plans import UNLABELLED, Plans, check_plans
from bertwright.examples.store import Store

DROP_A, DROP_B = 3 << 16, 4 << 16
"""Counter offsets of the Bernoulli draws that decide at which end tokens are dropped (one bit per token)."""


@dataclass(frozen=True)
class Rows:
    """R selected plan rows as columns, with token indices into the entire store."""

    key: Keys
    """[R] random key of each row's decisions."""
    a_start: Ids
    """[R] index of the first token of A."""
    a_count: Ids
    """[R] number of tokens of A, before or after `truncate`."""
    b_start: Ids
    """[R] index of the first token of B."""
    b_count: Ids
    """[R] number of tokens of B, likewise; 0 without a second segment."""
    document_breaks: Ids
    """[R] number of documents that begin inside A."""
    label: Ids
    """[R] 1, 0 or `UNLABELLED`."""

    def __getitem__(self, which: NDArray[np.int64] | slice) -> Rows:
        return Rows(*(column[which] for column in vars(self).values()))

    @property
    def specials(self) -> Ids:
        """[R] number of special tokens: [CLS], and [SEP] after A, after B, and at each document's end inside A."""
        return (2 + (self.b_count > 0) + self.document_breaks).astype(np.int64)

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """[R] whether each is a pair with a label."""
        labelled: NDArray[np.bool_] = (self.b_count > 0) & (self.label != UNLABELLED)
        return labelled

    def lengths(self, longest: int) -> Ids:
        """[R] tokens of each example after truncation to `longest`, special tokens included."""
        lengths: Ids = np.minimum(self.a_count + self.b_count + self.specials, longest)
        return lengths


_STORED = ("a_start", "a_count", "b_start", "b_count", "breaks", "label")
"""The fields of a plan row, in the order of the columns of `Rows`."""


def rows_of(store: Store, plans: Plans, passes: Ids, rows: Ids, keys: Keys) -> Rows:
    """The R rows `rows` of the `passes` [R], with `keys` [R] and token indices from the beginning of the store."""
    columns = np.empty((len(_STORED), len(rows)), np.int64)
    for number in np.unique(passes):
        of_pass = passes == number
        stored = plans.rows[number][rows[of_pass]]
        # Widened: sums of 16-bit counts would overflow.
        for column, name in zip(columns, _STORED, strict=True):
            column[of_pass] = stored[name]
        # Stored indices are relative to the first token of the shard, so that 32 bits suffice (decision 0003).
        shift = store.shard_tokens[np.searchsorted(plans.shard_ends[number], rows[of_pass], side="right")]
        columns[_STORED.index("a_start"), of_pass] += shift
        columns[_STORED.index("b_start"), of_pass] += shift
    return Rows(keys, *columns)


def truncate(rows: Rows, longest: int) -> Rows:
    """The rows truncated to `longest` tokens, special tokens included.

    The original rule: while too long, drop a token of the longer segment (B on ties), at its front or back with equal
    probability. The result has a closed form: both segments end at half the budget unless one was shorter, and the
    number of tokens dropped at the front is binomial.
    """
    budget = longest - rows.specials
    # A keeps the extra token of an odd budget, because B loses a token on ties.
    half_a, half_b = (budget + 1) // 2, budget // 2
    a_room = np.where(rows.b_count <= half_b, budget - rows.b_count, half_a)
    a_kept = np.minimum(rows.a_count, a_room)
    b_kept = np.minimum(rows.b_count, budget - a_kept)
    a_front = _binomial(rows.key, DROP_A, rows.a_count - a_kept)
    b_front = _binomial(rows.key, DROP_B, rows.b_count - b_kept)
    return Rows(
        rows.key, rows.a_start + a_front, a_kept, rows.b_start + b_front, b_kept, rows.document_breaks, rows.label
    )


def collate(rows: Rows, longest: int, store: Store, masking: Masking) -> MicroBatch:
    """All rows as one packed batch, masked."""
    lengths, rows = rows.lengths(longest), truncate(rows, longest)
    owner, start, count, is_second = _parts(rows, store)
    opens = np.diff(owner, prepend=-1) > 0
    sizes = count + 1 + opens  # each part ends with [SEP], the first of a row begins with [CLS]
    part_ends, ends = np.cumsum(sizes), np.cumsum(lengths)
    begins = ends - lengths
    flat = np.arange(ends[-1] if len(ends) else 0)
    # Indices at special-token positions point next to their part, which may be outside the store: they are clipped here
    # and overwritten below.
    tokens = np.take(store.tokens, flat + np.repeat(start - opens - (part_ends - sizes), sizes), mode="clip")
    tokens = tokens.astype(np.int64)
    tokens[begins], tokens[part_ends - 1] = store.vocabulary.cls, store.vocabulary.sep
    special = np.arange(lengths.max(initial=0)) >= lengths[:, None]
    special[:, :1] = True
    special[owner, part_ends - 1 - begins[owner]] = True
    sequence, position = masking.choose(rows.key, lengths, special, tokens)
    chosen = begins[sequence] + position
    labels = tokens[chosen]
    tokens[chosen] = masking.replace(rows.key[sequence], position, labels)
    return MicroBatch(
        token_ids=tokens,
        position_ids=flat - np.repeat(begins, lengths),
        segment_ids=np.repeat(is_second, sizes).astype(np.int64),
        cu_seqlens=np.concatenate([[0], ends]).astype(np.int32),
        cu_rows=np.concatenate([[0], ends]).astype(np.int32),
        max_row=int(lengths.max(initial=0)),
        prediction_positions=chosen,
        labels=labels,
        weights=np.ones(len(labels), np.float32),
        # The loss needs a valid class; unlabelled rows get class 0 and weight 0.
        sequence_labels=np.where(rows.label == UNLABELLED, 0, rows.label),
        sequence_weights=rows.labelled.astype(np.float32),
    )


def _parts(rows: Rows, store: Store) -> tuple[Ids, Ids, Ids, NDArray[np.bool_]]:
    """The parts that a [SEP] ends: A, cut where a document begins inside it, and B.

    Returns the row, first token and number of tokens of each part, and whether it is B.
    """
    pair, broken = np.flatnonzero(rows.b_count), np.flatnonzero(rows.document_breaks)
    document_breaks, counts = rows.document_breaks[broken], rows.a_count.copy()
    inside = documents_inside(store, rows.a_start[broken], rows.a_count[broken], document_breaks)
    counts[broken] = inside.first
    owner = np.concatenate([np.arange(len(rows.key)), np.repeat(broken, document_breaks), pair])
    start = np.concatenate([rows.a_start, inside.starts, rows.b_start[pair]])
    count = np.concatenate([counts, inside.sizes, rows.b_count[pair]])
    # Stable: the parts of a row keep the order A, documents inside A, B.
    order = np.argsort(owner, kind="stable")
    return owner[order], start[order], count[order], order >= len(owner) - len(pair)


def _binomial(keys: Keys, counter: int, trials: Ids) -> Ids:
    """The number of successes in `trials` fair Bernoulli draws per key: draw j is bit j mod 64 of hash j // 64."""
    successes = np.zeros(len(keys), np.int64)
    remaining, number = trials.copy(), 0
    while (active := np.flatnonzero(remaining > 0)).size:
        # 64 fair bits from one hash, instead of one hash per dropped token.
        words = bits(keys[active], counter + number)
        counted = np.arange(64) < remaining[active, None]
        # Little-endian, so that bit j is the same on every machine.
        draws = np.unpackbits(words.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        successes[active] += (draws & counted).sum(axis=1, dtype=np.int64)
        remaining[active] -= 64
        number += 1
    return successes


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
