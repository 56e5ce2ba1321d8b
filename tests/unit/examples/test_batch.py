"""The hash of a batch: the same however it is cut, packed or ordered, another for any change that training sees."""

from collections.abc import Callable
from copy import deepcopy
from itertools import accumulate, pairwise
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.batch_hash import Sequence
from tests.reference.batch_hash import batch_hash as restated
from tests.reference.batch_types import TYPES, types
from tests.rows import each_row
from tests.unit.examples import made

from bertwright.core.artifact import Artifact
from bertwright.examples.batch import MicroBatch, batch_hash, hash_digits, max_row
from bertwright.examples.config import MaskingConfig, MicroBatching
from bertwright.examples.loader import LoaderSettings
from bertwright.examples.planned import open_loader

weights = st.sampled_from([1.0, 1.0, 0.0, 0.5])


@st.composite
def sequences(draw: st.DrawFn, least: int = 0) -> Sequence:
    ids = draw(st.lists(st.integers(0, 2**31 - 1), min_size=least, max_size=12))
    first = draw(st.integers(0, len(ids)))
    places = sorted(draw(st.sets(st.integers(0, len(ids) - 1)))) if ids else []
    return Sequence(
        [(token, position, int(position >= first)) for position, token in enumerate(ids)],
        [(place, draw(st.integers(0, 2**31 - 1)), draw(weights)) for place in places],
        (draw(st.integers(0, 2)), draw(weights)),
    )


def as_batch(given: list[Sequence]) -> MicroBatch:
    begins = [0, *accumulate(len(each.tokens) for each in given)]
    tokens = np.array([token for each in given for token in each.tokens], np.int64).reshape(-1, 3).T
    predictions = [
        (begin + i, *rest) for begin, each in zip(begins, given, strict=False) for i, *rest in each.predictions
    ]
    return MicroBatch(
        *tokens.copy(),
        cu_seqlens=np.array(begins, np.int32),
        cu_rows=np.array(sorted({0, begins[-1]}), np.int32),
        max_row=begins[-1],
        prediction_positions=np.array([p[0] for p in predictions], np.int64),
        labels=np.array([p[1] for p in predictions], np.int64),
        weights=np.array([p[2] for p in predictions], np.float32),
        sequence_labels=np.array([each.next_sentence[0] for each in given], np.int64),
        sequence_weights=np.array([each.next_sentence[1] for each in given], np.float32),
    )


@settings(max_examples=150, derandomize=True)
@given(st.lists(sequences(), max_size=8), st.randoms(use_true_random=False), st.sets(st.integers(0, 8)))
def test_it_is_the_restated_one_in_any_order_and_cut(given: list[Sequence], order: Random, cuts: set[int]) -> None:
    expected = restated(given)
    assert hash_digits(batch_hash(as_batch(given))) == expected
    order.shuffle(given)
    ends = [0, *sorted(cut for cut in cuts if cut < len(given)), len(given)]
    parts = [as_batch(given[first:end]) for first, end in pairwise(ends)]
    assert hash_digits(sum(map(batch_hash, parts))) == expected


TWO = [
    Sequence([(2, 0, 0), (4, 1, 0), (9, 2, 0), (3, 3, 0), (8, 4, 1), (3, 5, 1)], [(1, 7, 1.0), (4, 8, 1.0)], (0, 1.0)),
    Sequence([(2, 0, 0), (6, 1, 0), (5, 2, 0), (3, 3, 0), (4, 4, 1), (3, 5, 1)], [(1, 6, 1.0), (4, 7, 1.0)], (1, 1.0)),
]


def swap_tokens(a: Sequence, b: Sequence) -> None:
    a.tokens[2], b.tokens[2] = b.tokens[2], a.tokens[2]


def swap_labels(a: Sequence, b: Sequence) -> None:
    a.predictions[0], b.predictions[0] = b.predictions[0], a.predictions[0]


def swap_next_sentences(a: Sequence, b: Sequence) -> None:
    a.next_sentence, b.next_sentence = b.next_sentence, a.next_sentence


def swap_labels_within(a: Sequence, b: Sequence) -> None:
    a.predictions[:] = [(1, 8, 1.0), (4, 7, 1.0)]


def swap_ids_within(a: Sequence, b: Sequence) -> None:
    a.tokens[1:3] = [(9, 1, 0), (4, 2, 0)]


CHANGES: list[Callable[[Sequence, Sequence], None]] = [
    lambda a, b: a.tokens.__setitem__(2, (10, 2, 0)),
    lambda a, b: a.tokens.__setitem__(2, (9, 6, 0)),
    lambda a, b: a.tokens.__setitem__(3, (3, 3, 1)),
    lambda a, b: a.predictions.__setitem__(0, (1, 9, 1.0)),
    lambda a, b: a.predictions.__setitem__(0, (2, 7, 1.0)),
    lambda a, b: a.predictions.__setitem__(0, (1, 7, 0.5)),
    lambda a, b: a.predictions.pop(),
    lambda a, b: a.__setattr__("next_sentence", (1, 1.0)),
    lambda a, b: a.__setattr__("next_sentence", (0, 0.0)),
    lambda a, b: a.tokens.pop(),
    swap_tokens,
    swap_labels,
    swap_next_sentences,
    swap_labels_within,
    swap_ids_within,
]


def test_every_change_gives_another_hash() -> None:
    hashes = {batch_hash(as_batch(TWO)), batch_hash(as_batch(TWO[:1])), batch_hash(as_batch([TWO[0], *TWO]))}
    for change in CHANGES:
        changed = deepcopy(TWO)
        change(*changed)
        hashes.add(batch_hash(as_batch(changed)))
    assert len(hashes) == 3 + len(CHANGES)


@each_row("next_sentence", [(0, 0.0), (1, 0.0)])
def test_what_has_no_weight_does_not_count(next_sentence: tuple[int, float]) -> None:
    weightless = Sequence([(2, 0, 0), (5, 1, 0)], [(1, 9, 0.0)], next_sentence)
    assert batch_hash(as_batch([weightless, *TWO])) == batch_hash(as_batch(TWO))
    assert batch_hash(as_batch([weightless])) == batch_hash(as_batch([])) == 0


def test_the_digits_are_those_of_the_sum_modulo_two_to_the_64() -> None:
    assert hash_digits(2**64 + 255) == "00000000000000ff" and hash_digits(2**64 - 1) == "f" * 16


@each_row("batching", [MicroBatching(7), MicroBatching(3, row_tokens=96), MicroBatching(1, micro_tokens=200)])
@each_row("world", [1, 2, 3, 4])
def test_ranks_add_up_to_the_whole_step(examples: Artifact, batching: MicroBatching, world: int) -> None:
    whole, parts = (
        open_loader(examples, made.SETS[0], LoaderSettings(64, MaskingConfig(), 37, each, seed=3, phase="0"))
        for each in (MicroBatching(37), batching)
    )
    for step in (0, 9):
        (batch,) = whole.step(step)
        assert types(batch) == TYPES
        drawn = [part for rank in range(world) for part in parts.step(step, rank, world)]
        assert hash_digits(sum(map(batch_hash, drawn))) == hash_digits(batch_hash(batch))
        assert [part.max_row for part in drawn] == [max_row(part.cu_rows) for part in drawn]
    assert batch_hash(whole.step(0)[0]) != batch_hash(whole.step(1)[0])
