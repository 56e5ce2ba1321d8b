import struct
import tracemalloc
from itertools import islice

import numpy as np
import pytest
from tests.rows import each_row
from tests.unit.formats.samples import token_documents

from bertwright.core.errors import DataError
from bertwright.formats import megatron
from bertwright.formats.errors import ShardError
from bertwright.formats.megatron import open_index

DOCUMENTS = [[[5, 6, 7], [8]], [[9, 10]], [[11, 12, 13, 14]]]


def everything(file, tokens=5):
    """The documents of a data set, read about five tokens at a time, as lists."""
    documents = []
    index = open_index(file)
    for block in (index.read(*piece) for piece in index.pieces(tokens)):
        ids, lengths = iter(block.ids.tolist()), iter(block.lengths.tolist())
        documents += [[list(islice(ids, next(lengths))) for _ in range(count)] for count in block.counts]
    return documents


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


@each_row(("dtype", "code"), [(np.uint16, 8), (np.int32, 4), (np.int64, 5)])
def test_megatrons_files_are_read(tmp_path, dtype, code):
    write_new(tmp_path / "a", DOCUMENTS, dtype, code)
    assert megatron.facts(tmp_path / "a.idx").examples == 3
    assert everything(tmp_path / "a.idx") == DOCUMENTS


def test_the_older_form_is_read(tmp_path):
    write_old(tmp_path / "a", DOCUMENTS)
    assert everything(tmp_path / "a.idx") == DOCUMENTS


@each_row(("size", "dtype", "code"), [(500, np.uint16, 8), (70_000, np.int32, 4)])
def test_files_are_written_byte_for_byte_as_megatron_does(tmp_path, size, dtype, code):
    write_new(tmp_path / "theirs", DOCUMENTS, dtype, code)
    blocks = [token_documents(DOCUMENTS[:1]), token_documents(DOCUMENTS[1:])]
    assert megatron.write_documents(tmp_path / "ours.idx", blocks, size) == len(DOCUMENTS)
    for suffix in (".idx", ".bin"):
        assert (tmp_path / f"ours{suffix}").read_bytes() == (tmp_path / f"theirs{suffix}").read_bytes()


def test_ids_outside_the_vocabulary_are_not_written(tmp_path):
    for documents in (DOCUMENTS, [[[3, -1]]]):
        with pytest.raises(DataError, match="a document has an id outside the 14 entries"):
            megatron.write_documents(tmp_path / "b.idx", [token_documents(documents)], 14)
    assert not list(tmp_path.iterdir())


def test_a_negative_id_is_damage(tmp_path):
    write_new(tmp_path / "a", [[[5]], [[6, -7]]], np.int32, 4)
    with pytest.raises(ShardError, match=r"a\.bin: a document from 0 to 1 has a negative id"):
        everything(tmp_path / "a.idx")


def test_a_document_longer_than_any_text_is_damage(tmp_path, monkeypatch):
    monkeypatch.setattr(megatron, "LONGEST_DOCUMENT", 3)
    write_new(tmp_path / "a", DOCUMENTS, np.uint16, 8)
    with pytest.raises(ShardError, match="document 0 has 4 tokens"):
        everything(tmp_path / "a.idx")


def test_empty_sentences_and_documents_are_kept(tmp_path):
    for documents in ([], [[]], [[[]], [], [[5], [], [6, 7]], [], [[8, 9, 10, 11, 12, 13]], []]):
        megatron.write_documents(tmp_path / "a.idx", [token_documents(documents)], 500)
        assert everything(tmp_path / "a.idx") == documents
        assert megatron.facts(tmp_path / "a.idx").examples == len(documents)


@each_row("tokens", [1, 3, 5, 100])
def test_pieces_are_contiguous_and_of_the_requested_size(tmp_path, tokens):
    write_new(tmp_path / "a", DOCUMENTS, np.uint16, 8)
    index = open_index(tmp_path / "a.idx")
    pieces = index.pieces(tokens)
    assert [first for first, _ in pieces] == [0, *(stop for _, stop in pieces[:-1])] and pieces[-1][1] == len(DOCUMENTS)
    longest = max(sum(map(len, document)) for document in DOCUMENTS)
    assert all(len(index.read(*piece).ids) < tokens + longest for piece in pieces)


def test_a_cut_off_bin_file_is_seen_without_reading_all_of_it(tmp_path):
    write_new(tmp_path / "a", DOCUMENTS, np.uint16, 8)
    (tmp_path / "a.bin").write_bytes((tmp_path / "a.bin").read_bytes()[:-2])
    with pytest.raises(ShardError, match="a sentence ends after the .* tokens of the .bin file"):
        megatron.facts(tmp_path / "a.idx")


def test_every_cut_is_named(tmp_path):
    for write in (write_old, lambda prefix, documents: write_new(prefix, documents, np.uint16, 8)):
        write(tmp_path / "a", DOCUMENTS)
        index, data = (tmp_path / "a.idx").read_bytes(), (tmp_path / "a.bin").read_bytes()
        for cut in range(9, len(index)):
            (tmp_path / "a.idx").write_bytes(index[:cut])
            with pytest.raises(ShardError):
                everything(tmp_path / "a.idx")
        (tmp_path / "a.idx").write_bytes(index)
        for cut in range(len(data)):
            (tmp_path / "a.bin").write_bytes(data[:cut])
            with pytest.raises(ShardError):
                everything(tmp_path / "a.idx")
        (tmp_path / "a.bin").unlink()
        with pytest.raises(ShardError, match="No such file"):
            everything(tmp_path / "a.idx")


@each_row(
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
        (90, struct.pack("<q", 9), "are not in ascending order"),
        (50, struct.pack("<q", -2), "begins before"),
    ],
)
def test_an_index_that_points_elsewhere_is_refused(tmp_path, at, value, fault):
    write_new(tmp_path / "a", DOCUMENTS, np.uint16, 8)
    data = bytearray((tmp_path / "a.idx").read_bytes())
    data[at : at + len(value)] = value
    (tmp_path / "a.idx").write_bytes(data)
    with pytest.raises(ShardError, match=fault):
        everything(tmp_path / "a.idx")


def test_sentences_that_lie_upon_each_other_are_refused_unread(tmp_path):
    """An index of 16 kB that makes a gigabyte of a .bin file of 120 kB."""
    write_new(tmp_path / "a", [[[7] * 60_000]], np.uint16, 8)
    head = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, 1000, 2)
    lengths, pointers, ends = np.full(1000, 60_000, "<i4"), np.zeros(1000, "<i8"), np.array([0, 1000], "<i8")
    (tmp_path / "a.idx").write_bytes(head + lengths.tobytes() + pointers.tobytes() + ends.tobytes())
    tracemalloc.start()
    with pytest.raises(ShardError, match=r"sentences overlap: 60,000,000 tokens of 60,000"):
        everything(tmp_path / "a.idx")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


@each_row(("starts", "tokens"), [([0, 0, 0], 100), ([0, 0, 0], 1), ([0, 6, 6], 100), ([0, 6, 6], 1)])
def test_sentences_lie_one_after_another(tmp_path, starts, tokens):
    """An index whose pointers are all 0 read as the beginning of the file, time and again."""
    write_new(tmp_path / "a", [[[5, 6, 7]], [[8]], [[9, 10]]], np.uint16, 8)
    data = bytearray((tmp_path / "a.idx").read_bytes())
    at = 34 + 3 * 4
    data[at : at + 24] = np.array(starts, "<i8").tobytes()
    (tmp_path / "a.idx").write_bytes(data)
    with pytest.raises(ShardError, match="its sentences are not stored in sequence"):
        everything(tmp_path / "a.idx", tokens)
