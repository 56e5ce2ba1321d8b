"""Damaged and hostile TensorFlow checkpoints end in an error that names the file, and cost little memory."""

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reference.bundles import block, bundle, checked, field, place, sliced, table, variable, varint
from tests.rows import each_row
from torch import Tensor

from bertwright.core.checksums import masked_crc
from bertwright.core.errors import ArtifactError
from bertwright.model.importers.leveldb_table import MAGIC
from bertwright.model.importers.tensorflow import TensorFlowWeights
from bertwright.model.importers.tensorflow_bundle import Bundle, slice_key

pytest.importorskip("google_crc32c", reason="google-crc32c is not installed: pip install 'bertwright[formats]'")
GOLDEN = Path(__file__).parents[2] / "golden" / "tensorflow" / "google"
INDEX, DATA = "bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001"
WHOLE, PARTS = "bert/embeddings/word_embeddings", ((0, 2), (2, 2))
SPARSE, OVERCOMMIT = 2**40, Path("/proc/sys/vm/overcommit_memory")
OVERCOMMITS = OVERCOMMIT.is_file() and OVERCOMMIT.read_text().strip() == "1"


def write(folder: Path, index: bytes, data: int | bytes = 64) -> Path:
    """Write a checkpoint with so many bytes of data."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / INDEX).write_bytes(index)
    (folder / DATA).write_bytes(data if isinstance(data, bytes) else bytes(data))
    return folder / "bert_model.ckpt"


def read(prefix: Path) -> dict[str, Tensor]:
    weights = TensorFlowWeights.find(prefix)
    assert weights is not None
    assert weights.left_out is not None
    return weights.read()


def refused(prefix: Path) -> str:
    with pytest.raises(ArtifactError) as error:
        read(prefix)
    assert str(prefix.name) in str(error.value)
    return str(error.value)


def test_a_file_made_here_is_read(tmp_path: Path) -> None:
    entry = variable((2, 3), more=checked(24))
    assert read(write(tmp_path, bundle({WHOLE: entry})))["bert.embeddings.word_embeddings.weight"].shape == (2, 3)
    keys = {
        slice_key(WHOLE, (part, (0, -1))): variable((2, 3), offset=32 * n, more=checked(24))
        for n, part in enumerate(PARTS)
    }
    found = read(write(tmp_path, bundle({WHOLE: sliced((4, 3), *PARTS)}, more=keys)))
    assert found["bert.embeddings.word_embeddings.weight"].shape == (4, 3)


HEADERS = {
    b"": "it cannot have 0 data files",
    field(1, -1): "it cannot have -1 data files",
    field(1, 2**31): "it cannot have 2,147,483,648 data files",
    field(1, 1) + field(3, field(2, 2)): "it is of version 2 of the format; version 1 is read",
    b"\x07": "wire type 7 is unknown",
    b"\x0a\xff": "a field is truncated",
    b"\x08" + b"\xff" * 11: "an integer has more than 10 bytes",
}
ENTRIES = {
    variable((2, 3), offset=48): "is said to be at bytes 48 to 72 of bert_model.ckpt.data-00000-of-00001, which has 64",
    variable((2, 3), offset=-1): "is said to be 24 bytes at byte -1 of file 0 of 1",
    variable((2, 3), offset=2**62): f"at bytes {2**62:,} to",
    variable((2, 3), shard=1): "of file 1 of 1",
    variable((2, 3), shard=-1): "of file -1 of 1",
    variable((2, 3), size=25): r"has 25 bytes, which are not \(2, 3\) of float32",
    variable((2, 3), size=-24): "is said to be -24 bytes",
    variable((2**40, 2)): "at bytes 0 to 8,796,093,022,208 of bert_model.ckpt.data-00000-of-00001, which has 64",
    variable((-2, -3), size=24): "cannot have 2 dimensions of the sizes -2, -3",
    variable((2**62, 4), size=0): "cannot have 2 dimensions of the sizes 4611686018427387904, 4",
    variable((1,) * 9): "cannot have 9 dimensions of the sizes 1, 1",
    variable((2, 3), dtype=7): "is of string, which is not read",
    variable((2, 3), dtype=99): "is of dtype 99, which is not read",
    variable((2, 3)): "does not match its checksum",
    b"\x12\x02\x08": "a field is truncated",
    sliced((4, 3), (0, 2)): "a slice of bert/embeddings/word_embeddings is missing",
    sliced((4, 3), *PARTS): "a slice of bert/embeddings/word_embeddings is missing",
    variable((2, 3), more=bytes(2**18)): "at most 262,144 are supported",
}
SLICES: dict[bytes, tuple[list[tuple[int, int]], str]] = {
    sliced((4, 3), (0, 2), (0, 2)): ([(0, 2)], "have 6 of its 12 elements"),
    sliced((6, 3), (0, 2), (2, 2), (0, 2)): ([(0, 2), (2, 2)], "have 12 of its 18 elements"),
    sliced((4, 3), (0, 2), (1, 2)): ([(0, 2), (1, 2)], "overlap, and do not make up all of it"),
    sliced((4, 3), (0, 2), (3, 2)): ([(0, 2), (3, 2)], "is not a part of it"),
    sliced((4, 3), (-1, 2), (2, 2)): ([(-1, 2), (2, 2)], "is not a part of it"),
    sliced((4, 2), (0, 2), (2, 2)): ([(0, 2), (2, 2)], "is not a part of it"),
}
BLOCKS = {
    "restarts": (
        lambda: [block([(b"", field(1, 1))], struct.pack("<I", 2**32 - 1))],
        "cannot have 4,294,967,295 restarts",
    ),
    "short": (lambda: [b"ab"], "a block is too short"),
    "shared": (lambda: [b"\x05\1\1aa" + struct.pack("<II", 0, 1)], "shares more than the key before it has"),
    "long": (lambda: [b"\0\x7f\x7fa" + struct.pack("<II", 0, 1)], "is longer than the block"),
    "order": (lambda: [block([(b"", field(1, 1)), (b"b", b""), (b"a", b"")])], "keys are not in order"),
    "twice": (lambda: [block([(b"", field(1, 1)), (b"a", variable(())), (b"a", b"")])], "keys are not in order"),
    "key": (lambda: [block([(b"", field(1, 1)), (b"a" * 5000, b"")])], "a key has 5,000 bytes; at most 4,096"),
    "name": (lambda: [block([(b"", field(1, 1)), (b"\xff", variable((), 4))])], "can't decode byte 0xff"),
    "empty": (lambda: [block([])], "it has no header"),
    "no header": (lambda: [block([(b"a", b"")])], "it has no header"),
}


@each_row("header", HEADERS)
def test_headers(header: bytes, tmp_path: Path) -> None:
    assert HEADERS[header] in refused(write(tmp_path, bundle({WHOLE: variable((2, 3))}, header)))


@each_row("entry", ENTRIES)
def test_entries(entry: bytes, tmp_path: Path) -> None:
    prefix = write(tmp_path, bundle({WHOLE: entry}))
    with pytest.raises(ArtifactError, match=ENTRIES[entry]):
        read(prefix)


@each_row("entry", SLICES)
def test_slices(entry: bytes, tmp_path: Path) -> None:
    parts, said = SLICES[entry]
    keys = {
        slice_key(WHOLE, (part, (0, -1))): variable((2, 3), offset=24 * number, more=checked(24))
        for number, part in enumerate(parts)
    }
    assert said in refused(write(tmp_path, bundle({WHOLE: entry}, more=keys)))


@each_row("name", BLOCKS)
def test_blocks(name: str, tmp_path: Path) -> None:
    make, said = BLOCKS[name]
    assert said in refused(write(tmp_path, table(make())))


def test_variables_with_the_same_bytes(tmp_path: Path) -> None:
    same = {WHOLE: variable((2, 3), more=checked(24)), "x": variable((2,), offset=16)}
    assert "x is said to be at bytes 16 to 24" in refused(write(tmp_path, bundle(same)))


def test_a_block_that_is_listed_again_and_again(tmp_path: Path) -> None:
    """A loop of blocks, or one block for each of many entries, would make a small file endless."""
    content = block([(b"", field(1, 1)), *((b"%04d" % n, variable((2, 3))) for n in range(100))])
    again = table([content], lambda places: block((b"%04d" % n, place(*places[0])) for n in range(1000)))
    assert "begins before the end of the one before it" in refused(write(tmp_path, again))
    itself = table([content], lambda places: block([(b"a", place(places[0][1] + 18, 40))]))
    refused(write(tmp_path, itself))
    far = table([content], lambda places: block([(b"a", place(2**63, 2**63))]))
    assert f"it has no block of {2**63:,} bytes at byte {2**63:,}" in refused(write(tmp_path, far))


def test_a_compressed_index_is_refused_with_its_way(tmp_path: Path) -> None:
    content = block([(b"", field(1, 1)), (WHOLE.encode(), variable((2, 3)))])
    assert "compressed (snappy), which is not read; save it with" in refused(write(tmp_path, table([content], kind=1)))
    assert "compressed (method 9)" in refused(write(tmp_path, table([content], kind=9)))


def amplified(kind: str) -> bytes:
    """An index of the largest size that is read, each byte of which asks for as much as it can."""
    room, head = 4 * 2**20 - 200, [(b"", field(1, 1))]
    if kind == "keys":
        # Each entry shares 4,000 bytes with the one before: four bytes stand for a key.
        first = block([*head, (b"k" * 4000, b"")], b"")
        rest = b"".join(varint(4000) + b"\2\0" + struct.pack(">H", n) for n in range(65535))
        return table([first + rest[:room] + struct.pack("<II", 0, 1)])
    if kind == "entries":
        return table([block([*head, *((b"%07d" % n, variable((), 4, 4 * n)) for n in range(room // 30))])])
    value = {"fields": b"\x08\x01", "dimensions": b"", "slices": field(7, b"")}[kind]
    value = value * 2**17 if value else field(2, field(2, b"") * 2**16)
    value = value[: 2**18]
    return table([block([*head, *((b"%03d" % n, value) for n in range(room // (len(value) + 10)))])])


READ_IN_A_GIGABYTE = """
import resource, sys
from pathlib import Path
from bertwright.core.errors import ArtifactError
from bertwright.model.importers.tensorflow import TensorFlowWeights
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
for name in sys.argv[1:]:
    try:
        TensorFlowWeights(Path(name)).stored
    except ArtifactError as error:
        print(error)
"""


@pytest.mark.heavy
def test_a_small_file_costs_little_memory(tmp_path: Path) -> None:
    said = {
        "keys": "it has more than 50,000 entries",
        "entries": "it has more than 50,000 entries",
        "fields": "000 has 0 bytes",
        "dimensions": "000 cannot have 65,536 dimensions",
        "slices": "none of its 15 variables is known",
    }
    prefixes = [write(tmp_path / kind, amplified(kind)) for kind in said]
    assert all(2**18 < (prefix.parent / INDEX).stat().st_size < 4 * 2**20 for prefix in prefixes)
    child = subprocess.run([sys.executable, "-c", READ_IN_A_GIGABYTE, *prefixes], capture_output=True, text=True)
    lines = child.stdout.splitlines()
    assert len(lines) == len(said), child.stderr
    for line, (kind, text) in zip(lines, said.items(), strict=True):
        assert text in line, kind
    (prefixes[0].parent / INDEX).write_bytes(bytes(5 * 2**20))
    assert "larger than 4,194,304 bytes" in refused(prefixes[0])


@pytest.mark.skipif(OVERCOMMITS, reason="this machine promises any amount of memory (vm.overcommit_memory = 1)")
def test_a_sparse_file_cannot_ask_for_more_than_there_is(tmp_path: Path) -> None:
    prefix = write(tmp_path, bundle({WHOLE: variable((SPARSE // 4,))}))
    with (tmp_path / DATA).open("r+b") as handle:
        handle.truncate(SPARSE)
    assert "does not fit into memory" in refused(prefix)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    small = (GOLDEN.parent / "dtypes" / "x.index").read_bytes()
    for size in range(len(small)):
        (tmp_path / "x.index").write_bytes(small[:size])
        with pytest.raises(ValueError, match="it does not end like a table of LevelDB"):
            Bundle(tmp_path / "x")
    index, data = ((GOLDEN / name).read_bytes() for name in (INDEX, DATA))
    for size in range(0, len(index), 97):
        # What is left may be followed by other bytes, up to an end that is right.
        write(tmp_path, index[:size] + index[size + 1 :], data)
        refused(tmp_path / "bert_model.ckpt")
    for size in range(0, len(data), 997):
        write(tmp_path, index, data[:size])
        assert "which has" in refused(tmp_path / "bert_model.ckpt")


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_flipped_bits_are_found_and_changed_blocks_do_no_harm(tmp_path: Path, data: st.DataObject) -> None:
    """Bits of the index, with and without a checksum that fits again, and of the data."""
    name = data.draw(st.sampled_from([INDEX, DATA]))
    content = bytearray((GOLDEN / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    if repaired := name == INDEX and data.draw(st.booleans()):
        # The first block ends where the empty one begins: a block of 8 bytes, the index and the footer follow.
        size = content.rindex(bytes([0, 0, 0, 0, 1, 0, 0, 0, 0])) - 5 if content.count(MAGIC) else 0
        size = max(0, min(size, len(content) - 53))
        content[size + 1 : size + 5] = struct.pack("<I", masked_crc(bytes(content[: size + 1])))
    for other in (INDEX, DATA):
        (tmp_path / other).write_bytes(content if other == name else (GOLDEN / other).read_bytes())
    try:
        found = read(tmp_path / "bert_model.ckpt")
    except ArtifactError:
        return
    if not repaired:
        expected = read(GOLDEN / "bert_model.ckpt")
        assert all(np.array_equal(found[name], tensor) for name, tensor in expected.items())
