"""Batches of fixed shape: what counts stays, whatever the rows."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.batches import random_batch
from tests.rows import each_row

from bertwright.examples.batch import Counts, MicroBatch, batch_hash
from bertwright.examples.padding import Room, in_rows, with_room

ROOM = Room(rows=4, length=12, sequences=10, predictions=9)


def batch_of(rows: list[list[int]]) -> MicroBatch:
    """A random batch whose rows are of sequences of these lengths."""
    drawn = random_batch([length for row in rows for length in row])
    ends = np.cumsum([0, *map(sum, rows)]).astype(np.int32)
    arrays = {name: value.numpy() for name, value in vars(drawn).items() if name not in ("max_row", "cu_rows")}
    return MicroBatch(**arrays, cu_rows=ends, max_row=int(np.diff(ends).max(initial=0)))


ROWS = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), max_size=4)


@settings(max_examples=100, derandomize=True)
@given(ROWS)
def test_it_is_the_same_batch_in_full_rows(rows: list[list[int]]) -> None:
    batch = batch_of(rows)
    filled = in_rows(batch, ROOM)
    assert batch_hash(filled) == batch_hash(batch)
    assert filled.cu_rows.tolist() == [0, 12, 24, 36, 48] and filled.max_row == 12
    bounds = filled.cu_seqlens
    assert bounds[0] == 0 and bounds[-1] == 48 and (np.diff(bounds) >= 0).all()
    assert set(filled.cu_rows.tolist()) <= set(bounds.tolist()), "no sequence lies in two rows"
    for name in ("token_ids", "position_ids", "segment_ids"):
        assert getattr(filled, name).dtype == getattr(batch, name).dtype


def test_several_labels_of_a_sequence_stay_with_it() -> None:
    plain = batch_of([[3, 4], [2]])
    batch = replace(plain, sequence_labels=np.array([[1, 2], [3, 4], [5, 6]]))
    for padded in (in_rows(batch, ROOM), with_room(batch, 15, 9)):
        assert batch_hash(padded) == batch_hash(batch) != batch_hash(plain)
        assert padded.sequence_labels[padded.sequence_weights > 0].tolist() == [[1, 2], [3, 4], [5, 6]]
    swapped = replace(batch, sequence_labels=batch.sequence_labels[:, ::-1])
    assert batch_hash(swapped) != batch_hash(batch), "their order counts"


@each_row("rows", [[], [[1]], [[12], [12], [12], [12]], [[3, 4], [2], [1, 1, 1]]])
def test_every_batch_has_the_shape_of_the_room(rows: list[list[int]]) -> None:
    assert in_rows(batch_of(rows), ROOM).counts == Counts(10, 48, 9)


def test_a_batch_beyond_the_room_gets_a_multiple_of_it() -> None:
    batch = batch_of([[1] * 9, [12]])
    filled = in_rows(batch, replace(ROOM, predictions=len(batch.labels) - 1))
    assert filled.counts == Counts(20, 48, 2 * (len(batch.labels) - 1)) and batch_hash(filled) == batch_hash(batch)
