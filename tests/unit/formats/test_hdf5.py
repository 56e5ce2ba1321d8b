import io
import re
import struct
import subprocess
import sys
import tracemalloc

import h5py
import numpy as np
import pytest
from tests.rows import each_row
from tests.unit.formats.references import nvidia_loader, rows_of, write_nvidia, write_packed
from tests.unit.formats.samples import VOCABULARY, same, sample

from bertwright.core.errors import DataError
from bertwright.examples.instances import concatenate
from bertwright.formats.errors import ShardError
from bertwright.formats.format import Provenance, Shape
from bertwright.formats.hdf5 import padded as hdf5
from bertwright.formats.hdf5 import varlen as hdf5_varlen
from bertwright.formats.hdf5.padded import nvidia_file, nvidia_folder
from bertwright.formats.hdf5.writer import Sink

pytestmark = pytest.mark.heavy

SHAPE = Shape(32, 5, static=True)


def test_files_of_the_original_builder_are_read(tmp_path):
    found = sample(300)
    for compression in ("gzip", None):
        write_nvidia(tmp_path / "a.hdf5", rows_of(found), 32, 5, compression)
        assert same(concatenate(list(hdf5.read(tmp_path / "a.hdf5", VOCABULARY))), found)
        assert hdf5.facts(tmp_path / "a.hdf5").examples == 300
        assert hdf5.facts(tmp_path / "a.hdf5").shape == SHAPE


def test_the_original_loader_reads_what_is_written(tmp_path):
    found = sample(200)
    parts = iter([found.take(slice(0, 77)), found.take(slice(77, None))])
    assert hdf5.write(tmp_path / "a.hdf5", parts, SHAPE) == 200
    with h5py.File(tmp_path / "a.hdf5") as handle:
        assert {key: handle[key].dtype.str for key in handle} == hdf5.DTYPES
        assert {handle[key].compression for key in handle} == {"gzip"}
        assert not any(len(handle[key].attrs) for key in handle)
    for row, plain in enumerate(rows_of(found)):
        ids, segments, mask, labels, following = nvidia_loader(tmp_path / "a.hdf5", row, 5)
        size = len(plain["ids"])
        assert ids == plain["ids"] + [0] * (32 - size)
        assert segments == plain["segments"] + [0] * (32 - size)
        assert mask == [1] * size + [0] * (32 - size)
        expected = dict(zip(plain["positions"], plain["labels"], strict=True))
        assert labels == [expected.get(i, -1) for i in range(32)]
        assert following == [plain["next"]]


@each_row(
    ("positions", "labels"),
    [([3, 0, 9, 11, 0], [7, 0, 9, 10, 0]), ([3, 0, 0, 0, 0], [7, 8, 0, 0, 0]), ([0, 3, 9, 11, 12], [5, 6, 7, 8, 9])],
)
def test_predictions_behind_a_position_0_are_not_lost_in_silence(tmp_path, positions, labels):
    """NVIDIA's loader stops at the first position 0, so nothing may stand behind it."""
    write_nvidia(tmp_path / "a.hdf5", rows_of(sample(3)), 32, 5)
    with h5py.File(tmp_path / "a.hdf5", "r+") as handle:
        handle["masked_lm_positions"][1], handle["masked_lm_ids"][1] = positions, labels
    with pytest.raises(ShardError, match=rf"example 1 has a position 0 .* after {positions.index(0)} predictions"):
        list(hdf5.read(tmp_path / "a.hdf5"))
    with h5py.File(tmp_path / "a.hdf5", "r+") as handle:
        handle["masked_lm_positions"][1], handle["masked_lm_ids"][1] = [3, 0, 0, 0, 0], [7, 0, 0, 0, 0]
    (read,) = hdf5.read(tmp_path / "a.hdf5")
    assert (rows_of(read)[1]["positions"], rows_of(read)[1]["labels"]) == ([3], [7])


def test_a_file_made_of_holes_is_refused_unread(tmp_path):
    """Two terabytes of nothing in eight kilobytes: reading them would take hours."""
    widths = {"input_ids": 128, "input_mask": 128, "segment_ids": 128, "masked_lm_positions": 20, "masked_lm_ids": 20}
    file = tmp_path / "a.hdf5"
    with h5py.File(file, "w") as handle:
        for key, dtype in hdf5.DTYPES.items():
            settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            settings.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            settings.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            shape = (10**6, widths[key]) if key in widths else (10**6,)
            space = h5py.h5s.create_simple(shape)
            h5py.h5d.create(handle.id, key.encode(), h5py.h5t.py_create(np.dtype(dtype)), space, settings)
    if file.stat().st_blocks * 512 > file.stat().st_size // 100:
        pytest.skip("this file system keeps no holes")
    with pytest.raises(ShardError, match="it is a sparse file: only .* bytes are on the disk"):
        hdf5.facts(file)


def test_reading_goes_block_by_block(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5, "_BLOCK", 32 * 50)
    found = sample(300)
    write_nvidia(tmp_path / "a.hdf5", rows_of(found), 32, 5, None)
    assert [len(block) for block in hdf5.read(tmp_path / "a.hdf5")] == [50] * 6
    hdf5.write(tmp_path / "b.hdf5", iter([found]), SHAPE)
    blocks = list(hdf5.read(tmp_path / "b.hdf5"))
    assert len(blocks) > 1
    assert same(concatenate(blocks), found)


def test_varlen_files_round_trip_and_packed_ones_are_unpacked(tmp_path):
    found = sample(300)
    assert hdf5_varlen.write(tmp_path / "v.hdf5", iter([found]), SHAPE) == 300
    with h5py.File(tmp_path / "v.hdf5") as handle:
        assert "input_mask" not in handle
        assert {key: h5py.check_vlen_dtype(handle[key].dtype).str for key in hdf5_varlen.DTYPES} == {
            "input_ids": "<i2",
            "segment_ids": "|i1",
            "masked_lm_positions": "<i2",
            "masked_lm_ids": "<i2",
        }
    assert same(concatenate(list(hdf5_varlen.read(tmp_path / "v.hdf5", VOCABULARY))), found)
    write_packed(tmp_path / "p.hdf5", rows_of(found), 3)
    assert same(concatenate(list(hdf5_varlen.read(tmp_path / "p.hdf5", VOCABULARY))), found)


def test_ids_that_overflow_16_bits_are_refused_both_ways(tmp_path):
    found = sample(4)
    large = found.token_ids.copy()
    large[5] = 32_768
    big = type(found)(**(vars(found) | {"token_ids": large}))
    with pytest.raises(DataError, match="32,768.*signed 16-bit ids, up to 32,767"):
        hdf5_varlen.write(tmp_path / "v.hdf5", iter([big]), SHAPE)
    assert not list(tmp_path.iterdir())
    rows = rows_of(found)
    rows[2]["ids"][4] = -32_000  # 33,536 as a 16-bit number with sign
    write_packed(tmp_path / "p.hdf5", rows, 2)
    with pytest.raises(ShardError, match="example 2: a token id is negative"):
        list(hdf5_varlen.read(tmp_path / "p.hdf5"))


def test_too_long_rows_are_named_and_leave_no_file(tmp_path):
    with pytest.raises(DataError, match="tokens, but the maximum is 20"):
        hdf5.write(tmp_path / "a.hdf5", iter([sample(20)]), Shape(20, 5, static=True))
    with pytest.raises(DataError, match="needs a length"):
        hdf5.write(tmp_path / "a.hdf5", iter([]), Shape(None, None, static=True))
    assert not list(tmp_path.iterdir())


def damaged_files(tmp_path):
    """Files that try to reach outside or declare what is not there, by the fault that must be named."""
    rows = rows_of(sample(20))
    secret = tmp_path / "secret"
    secret.write_bytes(b"\1" * 100_000)

    def begin(name, leave="input_ids"):
        write_nvidia(tmp_path / name, rows, 32, 5)
        handle = h5py.File(tmp_path / name, "r+")
        del handle[leave]
        return handle

    with begin("external link") as handle:
        handle["input_ids"] = h5py.ExternalLink(str(secret), "/x")
    yield "external link", "is a link, which is not accepted"
    with begin("soft link") as handle:
        handle["input_ids"] = h5py.SoftLink("/segment_ids")
    yield "soft link", "is a link, which is not accepted"
    with begin("external storage") as handle:
        handle.create_dataset("input_ids", (20, 32), "i4", external=[(str(secret), 0, 2560)])
    yield "external storage", "is stored in another file"
    with begin("virtual") as handle:
        layout = h5py.VirtualLayout((20, 32), "i4")
        layout[:] = h5py.VirtualSource(str(secret), "x", (20, 32))
        handle.create_virtual_dataset("input_ids", layout)
    yield "virtual", "is stored in another file"
    with begin("filter") as handle:
        handle.create_dataset("input_ids", (20, 32), "i4", compression="lzf")
    yield "filter", "HDF5 filter 32000"
    with begin("huge") as handle:
        handle.create_dataset("input_ids", (2**40, 32), "i4", chunks=(1, 32), compression="gzip")
    yield "huge", "declares"
    with begin("unwritten") as handle:
        handle.create_dataset("input_ids", (20, 32), "i4", chunks=(20, 32), compression="gzip")
    yield "unwritten", "declares"
    with begin("wide chunk") as handle:
        handle.create_dataset("input_ids", (20, 32), "i4", maxshape=(None, None), chunks=(2**14, 2**13))
    yield "wide chunk", "chunks of 536,870,912 bytes"
    with begin("text") as handle:
        handle.create_dataset("input_ids", data=np.full((20, 32), b"abcd"))
    yield "text", "not integers"
    with begin("shape") as handle:
        handle.create_dataset("input_ids", data=np.ones((21, 32), "i4"))
    yield "shape", "but the other datasets imply"
    with begin("group") as handle:
        handle.create_group("input_ids")
    yield "group", "not a dataset"
    with begin("missing", "masked_lm_ids"):
        pass
    yield "missing", "masked_lm_ids is missing"
    with begin("mask", "input_mask") as handle:
        handle["input_mask"] = np.tile([1, 0], (20, 16)).astype("i1")
    yield "mask", "example 0: its mask"
    with begin("segments", "segment_ids") as handle:
        handle["segment_ids"] = np.tile([0, 1, 1, 0], (20, 8)).astype("i1")
    yield "segments", "example 0: its segment ids"


def test_hostile_files_are_refused_by_name(tmp_path):
    for name, fault in damaged_files(tmp_path):
        with pytest.raises(ShardError, match=fault) as error:
            hdf5.facts(tmp_path / name)
            list(hdf5.read(tmp_path / name))
        assert error.value.file == tmp_path / name


@each_row(
    ("key", "row", "values", "fault"),
    [
        ("packed_input_len", 0, [3, 4], "columns have different lengths"),
        ("packed_input_len", 1, [-5, 60], "columns have different lengths"),
        ("packed_masked_lm_len", 0, [1], "columns have different lengths"),
        ("next_sentence_labels", 2, [0, 1, 0], "columns have different lengths"),
        ("masked_lm_positions", 1, None, "not between"),
    ],
)
def test_packed_rows_that_do_not_add_up_are_named(tmp_path, key, row, values, fault):
    write_packed(tmp_path / "p.hdf5", rows_of(sample(6)), 2)
    with h5py.File(tmp_path / "p.hdf5", "r+") as handle:
        handle[key][row] = values or handle[key][row][::-1]
    with pytest.raises(ShardError, match=fault):
        list(hdf5_varlen.read(tmp_path / "p.hdf5"))


def test_columns_of_different_heights_are_named(tmp_path):
    hdf5_varlen.write(tmp_path / "v.hdf5", iter([sample(6)]), SHAPE)
    with h5py.File(tmp_path / "v.hdf5", "r+") as handle:
        handle["next_sentence_labels"].resize(0, axis=0)
    with pytest.raises(ShardError, match="different numbers of rows"):
        list(hdf5_varlen.read(tmp_path / "v.hdf5"))


def test_dangling_links_are_not_resolved(tmp_path):
    """A link that leads nowhere is as much a link as one to another file."""
    hdf5_varlen.write(tmp_path / "v.hdf5", iter([sample(6)]), SHAPE)
    with h5py.File(tmp_path / "v.hdf5", "r+") as handle:
        handle["input_mask"] = h5py.ExternalLink(str(tmp_path / "missing"), "/x")
    assert hdf5_varlen.facts(tmp_path / "v.hdf5") is None
    with pytest.raises(ShardError, match="is a link, which is not accepted|not a dataset"):
        hdf5.facts(tmp_path / "v.hdf5")


GZIP = {"compression": "gzip"}


@each_row(("chunked", "filters"), [(False, {}), (True, {}), (True, GZIP), (True, GZIP | {"shuffle": True})])
def test_absurd_run_is_refused_before_allocation(tmp_path, chunked, filters):
    write_packed(tmp_path / "p.hdf5", rows_of(sample(6)), 2)
    with h5py.File(tmp_path / "p.hdf5", "r+") as handle:
        old = handle["masked_lm_ids"][:]
        del handle["masked_lm_ids"]
        runs = h5py.vlen_dtype(np.dtype("i2"))
        handle.create_dataset("masked_lm_ids", (3,), runs, chunks=(2,) if chunked else None, **filters)
        column = handle["masked_lm_ids"]
        for row in range(3):
            column[row] = old[row]
    assert len(concatenate(list(hdf5_varlen.read(tmp_path / "p.hdf5")))) == 6
    with h5py.File(tmp_path / "p.hdf5", "r+") as handle:
        column = handle["masked_lm_ids"]
        bad = np.array([0xFFFFFFFF, 0, 0, 0] * 2, "<u4").tobytes()
        if chunked:
            column.id.write_direct_chunk((0,), bad, filter_mask=(1 << len(filters)) - 1)
        offset = column.id.get_offset()
    if not chunked:
        data = bytearray((tmp_path / "p.hdf5").read_bytes())
        data[offset : offset + 4] = b"\xff" * 4
        (tmp_path / "p.hdf5").write_bytes(data)
    with pytest.raises(ShardError, match="row 0, declares 4,294,967,295 values"):
        list(hdf5_varlen.read(tmp_path / "p.hdf5"))


def hostile_descriptors(file, count, descriptor):
    """A file of `count` rows, where `descriptor(row)` is length, heap and object of each run of every column."""
    with h5py.File(file, "w") as handle:
        for key, dtype in hdf5_varlen.DTYPES.items():
            handle.create_dataset(key, (count,), h5py.vlen_dtype(np.dtype(dtype)), chunks=(count,))
            stored = b"".join(struct.pack("<IQI", *descriptor(row)) for row in range(count))
            handle[key].id.write_direct_chunk((0,), stored)
        handle.create_dataset("next_sentence_labels", data=np.zeros(count, "i1"))


def read_in_memory(file):
    """The error that reading a file ends with, and the most memory that it took meanwhile (bytes)."""
    tracemalloc.start()
    try:
        with pytest.raises(ShardError) as error:
            for _ in hdf5_varlen.read(file, VOCABULARY):
                pass
        return error.value, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_shared_heap_objects_are_refused_before_reading(tmp_path):
    """A megabyte of descriptors of one object would unfold to gigabytes."""
    hostile_descriptors(tmp_path / "v.hdf5", 4000, lambda row: (30_000, 4096, 1))
    error, most = read_in_memory(tmp_path / "v.hdf5")
    assert error.file == tmp_path / "v.hdf5" and most < 10 * 2**20
    assert "input_ids declares runs of 240,000,000 bytes" in error.fault and "share their values" in error.fault


def test_heaps_inside_one_another_are_refused(tmp_path):
    """Each of them was kept whole: a megabyte of thousands took gigabytes."""
    file, count = tmp_path / "v.hdf5", 2000
    hostile_descriptors(file, count, lambda row: (0, 0, 0))
    start, size = file.stat().st_size, 2**20
    hostile_descriptors(file, count, lambda row: (1, start + 56 * row, 1))
    assert file.stat().st_size == start
    # A heap of two values, and of an object that takes everything up to the end of the file.
    form = "<4sB3xQHHxxxxQ8xHHxxxxQ"
    heaps = [struct.pack(form, b"GCOL", 1, size - 56 * row, 1, 1, 2, 2, 1, 2**40) for row in range(count)]
    file.write_bytes(file.read_bytes() + b"".join(heaps).ljust(size, b"\0"))
    error, most = read_in_memory(file)
    assert error.file == file and "They overlap" in error.fault and most < 10 * 2**20


def test_names_tell_the_truth():
    def folder(lower_case: bool, strip_accents: bool) -> str:
        return nvidia_folder(Provenance("hu", "128", lower_case, strip_accents, 128, 20, 0.15, seed=12345, passes=5))

    rest = "_seq_len_128_max_pred_20_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5"
    assert folder(True, True) == "hdf5_lower_case_1" + rest
    assert folder(False, False) == "hdf5_lower_case_0" + rest
    assert folder(True, False) == "hdf5_lower_case_1_accents_kept" + rest
    assert folder(False, True) == "hdf5_lower_case_0_accents_stripped" + rest
    assert nvidia_file("wikicorpus_hu", "test", 3) == "wikicorpus_hu_test_3.hdf5"


def test_missing_package_is_named(tmp_path):
    """Without h5py the message says what to install."""
    (tmp_path / "a.hdf5").write_bytes(b"\x89HDF\r\n\x1a\n")
    code = f"""
import sys; sys.modules["h5py"] = None
from pathlib import Path
from bertwright.formats.hdf5 import padded as hdf5
hdf5.facts(Path({str(tmp_path / "a.hdf5")!r}))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingExtraError" in found.stderr
    assert "pip install 'bertwright[formats]'" in found.stderr


WRITE_UNDER_A_LIMIT = """
import resource, sys
from pathlib import Path
from tests.unit.formats.samples import sample
from bertwright.core.errors import DataError
from bertwright.formats.format import Provenance, Shape
from bertwright.formats.hdf5.writer import Sink
from bertwright.formats.known import format_of
kind, most, file = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
try:
    format_of(kind).write(file, iter([sample(600, seed=seed) for seed in range(4)]), Shape(32, 5, static=True))
except DataError as error:
    sys.exit(str(error))
"""


@each_row("kind", ["hdf5", "hdf5-varlen"])
@each_row("most", [0, 1000, 5000, 60_000])
def test_a_disk_that_is_full_ends_in_a_sentence(tmp_path, kind, most):
    """libhdf5 by itself ends the process with signal 11."""
    file = tmp_path / "a.hdf5"
    command = [sys.executable, "-c", WRITE_UNDER_A_LIMIT, kind, str(most), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"cannot write {file}: File too large\. Choose a folder .*\n", done.stderr)
    assert not list(tmp_path.iterdir())


def test_libhdf5_reads_back_its_writes_after_a_failure(tmp_path):
    class Full(io.FileIO):
        def write(self, data):
            if self.tell() + len(data) > 10:
                raise OSError(28, "No space left on device")
            return super().write(data)

    with Full(tmp_path / "a", "w+") as plain:
        sink = Sink(plain)
        for at, data in ((0, b"012345"), (6, b"6789ab"), (4, b"XY"), (20, b"end")):
            sink.seek(at)
            assert sink.write(data) == len(data)
        sink.seek(2)
        assert sink.read(12) == b"23XY6789ab" + bytes(2)
        assert sink.truncate(30) == 30
        with pytest.raises(OSError, match="No space left"):
            sink.check()


def test_bytes_of_one_weight_lie_together(tmp_path):
    """Smaller than without, and any reader of HDF5 knows the filter."""
    hdf5.write(tmp_path / "ours", iter([sample(1000)]), Shape(32, 5, static=True))
    write_nvidia(tmp_path / "theirs", rows_of(sample(1000)), 32, 5)
    assert (tmp_path / "ours").stat().st_size < 0.9 * (tmp_path / "theirs").stat().st_size
    with h5py.File(tmp_path / "ours") as ours, h5py.File(tmp_path / "theirs") as theirs:
        assert all(ours[key].shuffle and ours[key].compression == "gzip" for key in ours)
        assert all(np.array_equal(ours[key][:], theirs[key][:]) for key in theirs)
