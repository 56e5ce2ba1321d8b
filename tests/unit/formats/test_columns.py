"""Columns of strangers become examples or a sentence with file and row: nothing wraps around, nothing is lost."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.rows import each_row

from bertwright.examples.instances import Instances
from bertwright.formats.columns import Place, before_sentinel, instances_of, pad, prefix_lengths, trim
from bertwright.formats.errors import ShardError

PLACE = Place(Path("part.x"), 1000, None)


def table(*rows: list[int]) -> NDArray[Any]:
    return np.array(rows, np.int64)


def example(**changes: Any) -> Instances:
    """[CLS] a [SEP] b [SEP] with its second token predicted, and one without a second segment; changed as said."""
    columns: dict[str, Any] = {
        "tokens": (np.array([2, 7, 3, 8, 3, 2, 9, 3]), np.array([5, 3])),
        "segment_ids": np.array([0, 0, 0, 1, 1, 0, 0, 0]),
        "positions": (np.array([1]), np.array([1, 0])),
        "labels": np.array([6]),
        "next_sentence_labels": np.array([1, -1]),
    }
    return instances_of(PLACE, **{**columns, **changes})


def test_whole_columns_become_examples() -> None:
    examples = example()
    assert examples.cu_seqlens.tolist() == [0, 5, 8] and examples.second.tolist() == [3, 3]
    assert examples.originals().tolist() == [2, 6, 3, 8, 3, 2, 9, 3]
    assert examples.next_sentence_labels.tolist() == [1, -1]


@each_row("label", [256, 257, 2**40, -257, 2, -2])
def test_label_that_overflows_8_bits_is_a_fault(label: int) -> None:
    with pytest.raises(ShardError, match=r"part\.x: example 1,001: its next-sentence label is not 0, 1 or -1"):
        example(next_sentence_labels=np.array([0, label]))


@each_row("number", [2**32 + 7, -(2**32) + 7, 2**31])
@each_row("column", ["tokens", "positions", "labels"])
def test_an_id_that_would_be_a_good_one_in_32_bits_is_a_fault(column: str, number: int) -> None:
    values: Any = np.array([number])
    if column == "tokens":
        values = np.array([2, number, 3, 8, 3, 2, 9, 3]), np.array([5, 3])
    if column == "positions":
        values = values, np.array([1, 0])
    with pytest.raises(ShardError, match="near example 1,000 exceeds 32 bits"):
        example(**{column: values})


@each_row(
    ("column", "value", "fault"),
    [
        ("segment_ids", np.zeros(7), "7 segment ids for 8 tokens"),
        ("labels", np.zeros(2), "2 predicted ids for 1 positions"),
        ("next_sentence_labels", np.zeros(1), "1 next-sentence labels for 2 examples"),
        ("segment_ids", np.array([0, 0, 0, 1, 1, 0, 1, 0]), "example 1,001: its segment ids are not zeros followed by"),
        ("segment_ids", np.array([0, 0, 0, 2, 0, 0, 0, 0]), "example 1,000: its segment ids are not zeros followed by"),
    ],
)
def test_columns_that_do_not_fit_each_other_are_a_fault(column: str, value: NDArray[Any], fault: str) -> None:
    with pytest.raises(ShardError, match=fault):
        example(**{column: value})


def test_foreign_id_is_a_fault_only_with_a_vocabulary() -> None:
    columns: dict[str, Any] = {"tokens": (np.array([2, 99, 3]), np.array([3])), "segment_ids": np.zeros(3)}
    columns |= {
        "positions": (np.zeros(0), np.zeros(1, int)),
        "labels": np.zeros(0),
        "next_sentence_labels": np.zeros(1),
    }
    assert instances_of(PLACE, **columns).token_ids.tolist() == [2, 99, 3]
    with pytest.raises(ShardError, match="outside the vocabulary of 10 entries"):
        instances_of(Place(PLACE.file, 0, ["x"] * 10), **columns)


def test_predictions_end_at_the_first_position_0() -> None:
    positions, labels = table([3, 5, 0, 0], [0, 0, 0, 0], [1, 2, 3, 4]), table([7, 8, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1])
    assert before_sentinel(PLACE, positions, labels).tolist() == [2, 0, 4]
    for hidden in (positions, labels):
        hidden[1, 2] = 9
        with pytest.raises(ShardError, match=r"example 1,001 has a position 0 \(\[CLS\]\) after 0 predictions"):
            before_sentinel(PLACE, positions, labels)
        hidden[1, 2] = 0


def test_a_mask_is_ones_before_zeros_or_a_fault() -> None:
    assert prefix_lengths(PLACE, table([1, 1, 0], [0, 0, 0], [1, 1, 1])).tolist() == [2, 0, 3]
    for wrong in ([0, 1, 1], [1, 0, 1], [0, 0, 1]):
        with pytest.raises(ShardError, match="example 1,001: its mask is not ones followed by zeros"):
            prefix_lengths(PLACE, table([1, 0, 0], wrong))


def test_padding_is_undone_by_trimming() -> None:
    values, cu = np.array([4, 5, 6, 7]), np.array([0, 3, 3, 4])
    matrix = pad(values, cu, 3, "<i4")
    assert matrix.tolist() == [[4, 5, 6], [0, 0, 0], [7, 0, 0]] and matrix.dtype == "<i4"
    assert trim(matrix, np.diff(cu)).tolist() == values.tolist()
    assert pad(values[:0], np.array([0]), 3, "i1").shape == (0, 3)
