"""A kind of examples defines an `ExampleSet`; order, ranks, micro-batches, packing and resuming are the loader's."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pytest
from tests.rows import each_row

from bertwright.examples.batch import MicroBatch, batch_hash
from bertwright.examples.config import MaskingConfig, MicroBatching
from bertwright.examples.example_set import ExampleSet, Ids, Selection, StepCounts
from bertwright.examples.loader import Heldout, Loader, LoaderSettings
from bertwright.examples.padding import in_rows

LENGTHS = np.array([3, 9, 5, 5, 7, 4, 8, 3, 6, 9, 2])
LENGTH = 12


class Tagged(ExampleSet):
    """Example i has the tokens 100·i, 100·i + 1, ...; each token has a label, its number modulo 4."""

    sizes: ClassVar = [len(LENGTHS)]
    arrays: ClassVar = []

    def lengths(self, some: Selection) -> Ids:
        return LENGTHS[some.rows] * self.sequences(some)

    def batch(self, some: Selection) -> MicroBatch:
        rows = np.repeat(some.rows, self.sequences(some))
        lengths = LENGTHS[rows]
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        places = np.concatenate([np.arange(0), *map(np.arange, lengths)])
        tokens = 100 * np.repeat(rows, lengths) + places
        return MicroBatch(
            token_ids=tokens,
            position_ids=places,
            segment_ids=np.zeros_like(tokens),
            cu_seqlens=bounds,
            cu_rows=bounds,
            max_row=int(lengths.max(initial=0)),
            prediction_positions=np.arange(len(tokens)),
            labels=tokens % 4,
            weights=np.ones(len(tokens), np.float32),
            sequence_labels=self.labels(some),
            sequence_weights=np.ones(len(rows), np.float32),
        )

    def labels(self, some: Selection) -> Ids:
        """[B]"""
        return np.zeros_like(some.rows)


class Spans(Tagged):
    """The first and the last token of an answer are two labels of its sequence."""

    def labels(self, some: Selection) -> Ids:
        """[B, 2]"""
        return np.stack([some.rows % 2, LENGTHS[some.rows] - 1], 1)


class Choices(Tagged):
    """An example is two to four sequences; the label of each is its number in the example."""

    most_sequences = 4

    def sequences(self, some: Selection) -> Ids:
        return 2 + some.rows % 3

    def labels(self, some: Selection) -> Ids:
        """[B]"""
        return np.concatenate([np.arange(0), *map(np.arange, self.sequences(some))])


KINDS = [Tagged(), Spans(), Choices()]
BATCHINGS = [(2,), (2, 3 * LENGTH), (8, 0, 3 * LENGTH)]


def loader(examples: ExampleSet, *batching: int, batch: int = 4) -> Loader:
    settings = LoaderSettings(3 * LENGTH, MaskingConfig(), batch, MicroBatching(*batching), seed=1, phase="0")
    return Loader(examples, settings)


def examples_of(kind: ExampleSet, batches: list[MicroBatch]) -> Iterator[int]:
    """The number of each example of some batches, after a look at its sequences."""
    for batch in batches:
        firsts = batch.token_ids[batch.cu_seqlens[:-1]] // 100
        examples, number = list[int](), 0
        while number < len(firsts):
            examples.append(int(firsts[number]))
            number += int(kind.sequences(Selection.of(np.array(examples[-1:])))[0])
        whole = kind.batch(Selection.of(np.array(examples, np.int64)))
        assert (np.diff(batch.cu_seqlens) == LENGTHS[firsts]).all()
        assert (batch.labels == batch.token_ids[batch.prediction_positions] % 4).all()
        assert batch.sequence_labels.shape == whole.sequence_labels.shape
        assert (batch.sequence_labels == whole.sequence_labels).all(), "an example is in one micro-batch"
        yield from examples


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_ranks_and_micro_batches_divide_the_same_examples(kind: ExampleSet) -> None:
    whole = [sum(batch_hash(batch) for batch in loader(kind, 4).step(step)) % 2**64 for step in range(6)]
    for batching in BATCHINGS:
        for world in (1, 2, 3):
            drawn = loader(kind, *batching)
            for step in (0, 5):  # as if resumed there
                ranks = [drawn.step(step, rank, world) for rank in range(world)]
                parts = [batch for batches in ranks for batch in batches]
                assert len(set(map(len, ranks))) == 1 and len(list(examples_of(kind, parts))) == 4
                assert sum(map(batch_hash, parts)) % 2**64 == whole[step]
                counts = [drawn.counts(step, rank, world) for rank in range(world)]
                assert StepCounts(*map(sum, zip(*counts, strict=True))) == drawn.counts(step)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_an_epoch_takes_every_example_once(kind: ExampleSet) -> None:
    for batch in (11, 4):  # an epoch is a step, or ends within one
        drawn = loader(kind, 3, batch=batch)
        read = [list(examples_of(kind, drawn.step(step))) for step in range(11)]
        numbers = [number for of_step in read for number in of_step]
        assert len(numbers) == 11 * batch and {numbers.count(number) for number in range(11)} == {batch}
    assert sorted(read[0]) != [0, 1, 2, 3], "the order is random"
    held = list(Heldout.evenly(kind, most=5).batches(2))
    assert list(examples_of(kind, held)) == [0, 2, 4, 6, 8] and len(held) == 3


@each_row("kind", KINDS)
def test_counts_and_the_mean_length_follow_from_its_batches(kind: ExampleSet) -> None:
    some = Selection.of(np.arange(11))
    every, sequences = kind.batch(some), kind.sequences(some)
    tokens = int((LENGTHS * sequences).sum())
    assert kind.counts(some) == (tokens, int(sequences.sum()), tokens)
    assert kind.mean_tokens == tokens / 11 and every.counts.tokens == tokens
    assert kind.counts(Selection.of(np.arange(0))) == (0, 0, 0)


@each_row("kind", KINDS)
def test_fixed_shapes_hold_them(kind: ExampleSet) -> None:
    drawn = loader(kind, 4)
    (batch,) = drawn.step(0)
    filled = in_rows(batch, room := drawn.room())
    assert batch_hash(filled) == batch_hash(batch)
    assert filled.counts == (room.sequences, room.rows * room.length, room.predictions)
