import struct

import numpy as np
import pytest

from bertwright.core.errors import DataError
from bertwright.examples.formats import megatron
from bertwright.examples.formats.errors import ShardError

DOCUMENTS = [[[5, 6, 7], [8]], [[9, 10]], [[11, 12, 13, 14]]]


def plain(documents):
    return [[sentence.tolist() for sentence in document] for document in documents]


def arrays(documents):
    return [[np.array(sentence) for sentence in document] for document in documents]


def write_new(prefix, documents, dtype, code):
    """megatron/core/datasets/indexed_dataset.py: _IndexWriter and IndexedDatasetBuilder."""
    sentences = [np.array(sentence, dtype) for document in documents for sentence in document]
    prefix.with_suffix(".bin").write_bytes(b"".join(sentence.tobytes() for sentence in sentences))
    pointers = np.cumsum([0] + [sentence.nbytes for sentence in sentences])[:-1]
    ends = np.cumsum([0] + [len(document) for document in documents])
    with open(prefix.with_suffix(".idx"), "wb") as stream:
        stream.write(b"MMIDIDX\x00\x00" + struct.pack("<Q", 1) + struct.pack("<B", code))
        stream.write(struct.pack("<Q", len(sentences)) + struct.pack("<Q", len(ends)))
        stream.write(np.array([len(sentence) for sentence in sentences], np.int32).tobytes(order="C"))
        stream.write(pointers.astype(np.int64).tobytes(order="C"))
        stream.write(ends.astype(np.int64).tobytes(order="C"))


def write_old(prefix, documents):
    """The TNTIDX form: IndexedDatasetBuilder.finalize."""
    sentences = [np.array(sentence, np.int32) for document in documents for sentence in document]
    prefix.with_suffix(".bin").write_bytes(b"".join(sentence.tobytes() for sentence in sentences))
    sizes = [len(sentence) for sentence in sentences]
    offsets = np.cumsum([0, *sizes])
    ends = np.cumsum([0] + [len(document) for document in documents])
    with open(prefix.with_suffix(".idx"), "wb") as index:
        index.write(b"TNTIDX\x00\x00" + struct.pack("<Q", 1) + struct.pack("<QQ", 4, 4))
        index.write(struct.pack("<QQ", len(sentences), len(sizes)) + struct.pack("<Q", len(ends)))
        for values in (range(len(sentences) + 1), offsets, sizes, ends):
            index.write(np.array(list(values), np.int64))


@pytest.mark.parametrize(("dtype", "code"), [(np.uint16, 8), (np.int32, 4), (np.int64, 5)])
def test_megatrons_files_are_read(tmp_path, dtype, code):
    write_new(tmp_path / "a", DOCUMENTS, dtype, code)
    assert megatron.facts(tmp_path / "a.idx").examples == 3
    assert plain(megatron.read_documents(tmp_path / "a.idx", 15)) == DOCUMENTS


def test_the_older_form_is_read(tmp_path):
    write_old(tmp_path / "a", DOCUMENTS)
    assert plain(megatron.read_documents(tmp_path / "a.idx")) == DOCUMENTS


@pytest.mark.parametrize(("size", "dtype", "code"), [(500, np.uint16, 8), (70_000, np.int32, 4)])
def test_files_are_written_byte_for_byte_as_megatron_does(tmp_path, size, dtype, code):
    write_new(tmp_path / "theirs", DOCUMENTS, dtype, code)
    assert megatron.write_documents(tmp_path / "ours.idx", arrays(DOCUMENTS), size) == 3
    for suffix in (".idx", ".bin"):
        assert (tmp_path / f"ours{suffix}").read_bytes() == (tmp_path / f"theirs{suffix}").read_bytes()


def test_ids_outside_the_vocabulary_are_refused(tmp_path):
    write_new(tmp_path / "a", DOCUMENTS, np.uint16, 8)
    with pytest.raises(ShardError, match="document 2 has an id outside"):
        list(megatron.read_documents(tmp_path / "a.idx", 14))
    with pytest.raises(DataError, match="document 2 has an id outside"):
        megatron.write_documents(tmp_path / "b.idx", arrays(DOCUMENTS), 14)
    assert not (tmp_path / "b.idx").exists()


def test_an_empty_data_set_has_no_documents(tmp_path):
    megatron.write_documents(tmp_path / "a.idx", [], 500)
    assert list(megatron.read_documents(tmp_path / "a.idx")) == []


def test_every_cut_is_named(tmp_path):
    for write in (write_old, lambda prefix, documents: write_new(prefix, documents, np.uint16, 8)):
        write(tmp_path / "a", DOCUMENTS)
        index, data = (tmp_path / "a.idx").read_bytes(), (tmp_path / "a.bin").read_bytes()
        for cut in range(9, len(index)):
            (tmp_path / "a.idx").write_bytes(index[:cut])
            with pytest.raises(ShardError):
                list(megatron.read_documents(tmp_path / "a.idx"))
        (tmp_path / "a.idx").write_bytes(index)
        for cut in range(len(data)):
            (tmp_path / "a.bin").write_bytes(data[:cut])
            with pytest.raises(ShardError):
                list(megatron.read_documents(tmp_path / "a.idx"))
        (tmp_path / "a.bin").unlink()
        with pytest.raises(ShardError, match="No such file"):
            list(megatron.read_documents(tmp_path / "a.idx"))


@pytest.mark.parametrize(
    ("at", "value", "fault"),
    [
        (9, struct.pack("<Q", 2), "version 2"),
        (17, b"\x06", "type 6"),
        (18, struct.pack("<Q", 2**60), "declares"),
        (34, struct.pack("<i", -1), "negative length"),
        (34, struct.pack("<i", 99), "ends after"),
        (50, struct.pack("<q", 3), "between two tokens"),
        (58, struct.pack("<q", 2**62), "ends after"),
        (82, struct.pack("<q", 1), "do not cover"),
        (90, struct.pack("<q", 9), "do not rise"),
    ],
)
def test_an_index_that_points_elsewhere_is_refused(tmp_path, at, value, fault):
    write_new(tmp_path / "a", DOCUMENTS, np.uint16, 8)
    data = bytearray((tmp_path / "a.idx").read_bytes())
    data[at : at + len(value)] = value
    (tmp_path / "a.idx").write_bytes(data)
    with pytest.raises(ShardError, match=fault):
        list(megatron.read_documents(tmp_path / "a.idx"))
