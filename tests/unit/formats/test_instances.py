from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.reference.batches import random_batch
from tests.rows import each_row
from tests.unit.formats.references import rows_of
from tests.unit.formats.samples import same, sample

from bertwright.core.errors import DataError
from bertwright.examples.instances import Instances, concatenate, stretches
from bertwright.formats.columns import check_instances, must_fit
from bertwright.formats.errors import ShardError
from bertwright.formats.export import instances


def changed(found: Instances, **columns) -> Instances:
    return Instances(**(vars(found) | columns))


def test_rows_can_be_taken_and_put_together_again(tmp_path):
    found = sample(20)
    rows = np.random.default_rng(0).permutation(20)
    assert rows_of(found.take(rows)) == [rows_of(found)[row] for row in rows]
    assert same(concatenate([found.take(slice(0, 7)), found.take(slice(7, None))]), found)
    assert len(found.take(slice(5, 5))) == 0


def test_originals_put_the_labels_back():
    found = sample(20)
    plain = []
    for row in rows_of(found):
        for position, label in zip(row["positions"], row["labels"], strict=True):
            row["ids"][position] = label
        plain += row["ids"]
    assert found.originals().tolist() == plain
    assert found.segment_ids.tolist() == [s for row in rows_of(found) for s in row["segments"]]


def test_whole_examples_pass(tmp_path):
    assert check_instances(sample(50), tmp_path, 0, 500) is not None
    assert check_instances(sample(50, masks=False), tmp_path, 0) is not None


@each_row(
    ("column", "index", "value", "fault"),
    [
        ("token_ids", 40, -1, "negative|outside"),
        ("token_ids", 40, 500, "outside the vocabulary of 500"),
        ("labels", 3, 500, "label of a prediction"),
        ("positions", 0, 0, "not between"),
        ("positions", 2, 31_000, "not between"),
        ("positions", 1, 1, "are not in ascending order"),
        ("second", 2, 0, "second segment"),
        ("second", 2, 33, "second segment"),
        ("next_sentence_labels", 4, 2, "next-sentence label"),
    ],
)
def test_every_broken_rule_names_file_and_row(tmp_path, column, index, value, fault):
    found = sample(20)
    array = vars(found)[column].copy()
    array[index] = value
    with pytest.raises(ShardError, match=fault) as error:
        check_instances(changed(found, **{column: array}), tmp_path / "file.hdf5", 1000, 500)
    assert "file.hdf5: example 1,0" in str(error.value)


def test_a_fall_between_examples_is_none(tmp_path):
    """Positions begin anew in each example, also behind one without predictions."""
    found = changed(
        sample(3, masks=False),
        positions=np.array([5, 2], np.int32),
        labels=np.array([7, 7], np.int32),
        cu_predictions=np.array([0, 1, 1, 2]),
    )
    assert check_instances(found, tmp_path, 0, 500) is found


def test_what_does_not_fit_is_named(tmp_path):
    with pytest.raises(DataError, match="the maximum is 20"):
        must_fit(sample(20), tmp_path, 0, 20, 5)
    with pytest.raises(DataError, match="predictions, but the maximum is 2"):
        must_fit(sample(20), tmp_path, 0, 32, 2)


def test_stretches_have_about_the_requested_size():
    sizes = np.array([3, 0, 5, 9, 1, 0, 2])
    for most in (1, 4, 8, 100):
        found = stretches(sizes, most)
        assert [i for start, stop in found for i in range(start, stop)] == list(range(7))
        assert all(start < stop and sizes[start : stop - 1].sum() <= most for start, stop in found)
    assert stretches(sizes[:0], 5) == []
    assert stretches(sizes, 100) == [(0, 7)]


def test_a_sequence_without_a_label_has_none_in_files() -> None:
    """In a batch its label has the weight 0."""
    batch = replace(random_batch([9, 5, 7]).map(torch.Tensor.numpy), sequence_labels=np.array([1, 0, 0]))
    found = instances(replace(batch, sequence_weights=np.array([1, 0, 1], np.float32)))
    assert found.next_sentence_labels.tolist() == [1, -1, 0]
