"""Cut and bit-flipped files of every format: an error that names the file, or examples; nothing else may happen."""

import random
import resource

import numpy as np
import pytest
from tests.rows import each_row
from tests.unit.formats.references import rows_of, write_nvidia, write_packed
from tests.unit.formats.samples import CLS, SEP, VOCABULARY, same, sample

from bertwright.examples.instances import Instances, concatenate
from bertwright.formats import lddl
from bertwright.formats.datasets import examples as datasets
from bertwright.formats.detect import file_info
from bertwright.formats.errors import ShardError
from bertwright.formats.format import Shape
from bertwright.formats.hdf5 import padded as hdf5
from bertwright.formats.hdf5 import varlen as hdf5_varlen
from bertwright.formats.known import format_of
from bertwright.formats.tfrecord import examples as tfrecord

pytestmark = pytest.mark.heavy

FOUND, SHAPE = sample(20), Shape(32, 5, static=True)
MAKERS = {
    "hdf5": (hdf5, lambda file: hdf5.write(file, iter([FOUND]), SHAPE)),
    "hdf5 of the builder": (hdf5, lambda file: write_nvidia(file, rows_of(FOUND), 32, 5)),
    "varlen": (hdf5_varlen, lambda file: hdf5_varlen.write(file, iter([FOUND]), SHAPE)),
    "packed": (hdf5_varlen, lambda file: write_packed(file, rows_of(FOUND), 3)),
    "tfrecord": (tfrecord, lambda file: tfrecord.write(file, iter([FOUND]), SHAPE)),
    "tfrecord.gz": (tfrecord, lambda file: tfrecord.write(file, iter([FOUND]), SHAPE)),
    "lddl": (lddl, lambda file: lddl.write(file, iter([FOUND]), SHAPE, VOCABULARY)),
    "datasets": (datasets, lambda file: datasets.write(file, iter([FOUND]), SHAPE)),
}
CHECKED = ("hdf5", "hdf5 of the builder", "tfrecord", "tfrecord.gz")
"""Formats whose content is covered by checksums: a flipped bit is noticed, or changed nothing."""


def most_memory():
    """Most memory this process has had (MiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def outcome(module, file):
    """What became of a damaged file."""
    try:
        if file_info(file) is None:
            return "unknown"
        found = concatenate(list(module.read(file, VOCABULARY)))
    except ShardError as error:
        assert error.file == file
        return "named"
    return "same" if same(found, FOUND) else "other"


@each_row("name", MAKERS)
def test_cuts_and_flipped_bits(tmp_path, name):
    module, make = MAKERS[name]
    file = tmp_path / name.replace(" ", "_")
    make(file)
    data, dice, before = file.read_bytes(), random.Random(name), most_memory()
    outcomes = {outcome(module, file)}
    assert outcomes == {"same"}
    for cut in [0, 1, 7, *(dice.randrange(len(data)) for _ in range(40))]:
        file.write_bytes(data[:cut])
        assert outcome(module, file) in ("named", "unknown")
    for number in range(150):
        flipped = bytearray(data)
        flipped[dice.randrange(len(data) if number % 2 else min(len(data), 3000))] ^= 1 << dice.randrange(8)
        file.write_bytes(flipped)
        outcomes.add(outcome(module, file))
    assert "named" in outcomes
    assert "other" not in outcomes or name not in CHECKED
    assert most_memory() - before < 300  # nothing was allocated because a damaged file declared it


@each_row("kind", ["hdf5", "hdf5-varlen", "tfrecord", "lddl", "datasets"])
def test_tokens_decoded_at_once_are_bounded(tmp_path, kind):
    """Repeated text shrinks to little, so the size of a file says nothing about the memory its examples take."""
    length, count = 32_000, 160
    ids = np.full(count * length, 9, np.int32)
    edges = np.arange(count + 1) * length
    ids[edges[:-1]], ids[edges[1:] - 1], ids[edges[1:] - 9] = CLS, SEP, SEP
    columns = (edges, np.full(count, length - 8), np.full(count, 2), np.full(count, 7), np.arange(count + 1))
    found = Instances(ids, *(column.astype(np.int64) for column in columns), np.zeros(count, np.int8))
    format_of(kind).write(tmp_path / "f", iter([found]), Shape(length, 1, static=True), VOCABULARY)
    sizes = [len(block.token_ids) for block in format_of(kind).read(tmp_path / "f", VOCABULARY)]
    assert sum(sizes) == len(ids) and max(sizes) <= 2**22


@each_row("size", ["0", "-1", "1_0", " 16", "32769", "9" * 5000, "x", ""])
def test_a_stated_length_that_is_none_is_damage(tmp_path, monkeypatch, size):
    monkeypatch.setattr(Shape, "metadata", {"bertwright.length": size})
    for kind in ("hdf5-varlen", "lddl", "datasets"):
        file = tmp_path / kind
        format_of(kind).write(file, iter([FOUND]), SHAPE, VOCABULARY)
        with pytest.raises(ShardError, match=r"its metadata bertwright.length is '.*', not a number from 1 to 32,768"):
            file_info(file)


@pytest.mark.parametrize("value", [16, np.arange(4), np.array([b"16"]), "16"])
def test_attributes_of_hdf5_in_another_form_are_not_read(tmp_path, value):
    h5py, file = pytest.importorskip("h5py"), tmp_path / "a.hdf5"
    hdf5_varlen.write(file, iter([FOUND]), SHAPE)
    with h5py.File(file, "r+") as handle:
        handle.attrs["bertwright.length"] = value
    assert file_info(file).shape == Shape(None, 5, static=True)
