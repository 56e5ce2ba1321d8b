import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from tests.rows import each_row
from tests.unit.corpus.sources.reading import Read

from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.compression import Compression
from bertwright.corpus.sources.detect import examine
from bertwright.corpus.sources.file import File, Reader, sampled_hash

PACKERS: dict[Compression, Callable[[bytes], bytes]] = {
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "gz": gzip.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@each_row("compression", PACKERS)
def test_reader_decodes_all_streams_and_marks_a_cut_end(tmp_path: Path, compression: Compression) -> None:
    pack, text = PACKERS[compression], random.Random(4).randbytes(3000)
    data = pack(text) + pack(b"") + pack(text[::-1])
    file = File(put(tmp_path, "a", data), "text", compression)
    reader = Reader(file)
    assert b"".join(reader) == text + text[::-1]
    assert not reader.cut and reader.position == len(data)
    for lost in (1, 40, 2900):
        file.path.write_bytes(data[:-lost])
        reader = Reader(file)
        assert (text + text[::-1]).startswith(b"".join(reader))
        assert reader.cut


@each_row("compression", PACKERS)
def test_damage_in_the_middle_has_a_place(tmp_path: Path, compression: Compression) -> None:
    data = bytearray(PACKERS[compression](b"".join(b"%d lines of a text\n" % i for i in range(30_000))))
    data[len(data) // 2 : len(data) // 2 + 8] = bytes(8)
    with pytest.raises(SourceError, match=r"damaged before byte [\d,]+ .*Download it again"):
        list(Reader(File(put(tmp_path, "a", bytes(data)), "text", compression)))


@each_row("compression", PACKERS)
def test_highly_compressed_bytes_come_in_small_blocks(tmp_path: Path, compression: Compression) -> None:
    data = PACKERS[compression](bytes(300_000_000 if compression == "zst" else 30_000_000))
    sizes = [len(block) for block in Reader(File(put(tmp_path, "a", data), "text", compression))]
    assert sum(sizes) in (30_000_000, 300_000_000)
    assert max(sizes) <= (2**20 if compression in ("bz2", "xz") else 128 * 2**20)


@each_row("compression", PACKERS)
def test_a_head_can_be_read_in_small_blocks(tmp_path: Path, compression: Compression) -> None:
    text = random.Random(5).randbytes(100_000)
    file = File(put(tmp_path, "a", PACKERS[compression](text)), "text", compression)
    blocks = list(Reader(file, size=1000))
    assert b"".join(blocks) == text
    if compression in ("bz2", "xz"):
        assert max(map(len, blocks)) <= 1000


def test_zstd_with_frames_to_skip_and_too_large_a_window(tmp_path: Path) -> None:
    skipped = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    data = skipped + zstandard.ZstdCompressor().compress(b"first") + skipped + PACKERS["zst"](b"second")
    assert b"".join(Reader(examine(put(tmp_path, "a", data)))) == b"firstsecond"
    wide = zstandard.ZstdCompressionParameters(window_log=28, compression_level=1)
    packer = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    data = packer.compress(b"text") + packer.flush()
    with pytest.raises(SourceError, match="damaged before byte|memory"):
        examine(put(tmp_path, "b", data))


SKIPPED = b"\x50\x2a\x4d\x18" + bytes(4)  # a zstd frame without content


@each_row(
    ("compression", "stream"),
    [
        *((name, pack(b"")) for name, pack in PACKERS.items()),
        ("zst", SKIPPED),
    ],
)
def test_a_file_of_empty_streams_is_refused_early(tmp_path: Path, compression: Compression, stream: bytes) -> None:
    path = put(tmp_path, f"a.{compression}", stream * 200_000)
    file = File(path, "text", compression)
    with pytest.raises(SourceError, match=r"^\S+/a\.\w+ has more than 10,000 \w+ streams in a row without content"):
        list(Reader(file))


def test_empty_streams_among_others_are_passed_over(tmp_path: Path) -> None:
    path = put(tmp_path, "a.zst", (SKIPPED * 900 + zstandard.compress(b"a")) * 12)
    assert b"".join(Reader(File(path, "text", "zst"))) == b"a" * 12


def test_utf16_is_read_in_any_byte_order_with_fault_positions(tmp_path: Path) -> None:
    for data in ("\ufeffhíd".encode("utf-16-be"), "híd".encode("utf-16")):
        assert b"".join(Reader(examine(put(tmp_path, "a.txt", data)))).decode() == "híd"
    lone = examine(put(tmp_path, "a.txt", "ab".encode("utf-16") + b"\x00\xdc\x00\xdc"))
    assert b"".join(Reader(lone)) == b"ab\xff\xff"
    with pytest.raises(SourceError, match="not valid UTF-16 at byte 2"):
        Read(lone.path, tmp_path)


def test_the_sampled_hash_is_of_content_and_size(tmp_path: Path) -> None:
    data = random.Random(6).randbytes(9_000_000)
    first = sampled_hash(put(tmp_path, "a", data))
    assert sampled_hash(put(tmp_path, "b", data)) == first
    assert sampled_hash(put(tmp_path, "c", data + b"x")) != first
    assert sampled_hash(put(tmp_path, "d", data[:-1] + b"\0")) != first
    assert sampled_hash(put(tmp_path, "e", b"abc")) != sampled_hash(put(tmp_path, "f", b"abd"))


def test_the_sampled_hash_misses_a_change_between_the_blocks(tmp_path: Path) -> None:
    data = bytearray(random.Random(6).randbytes(9_000_000))
    first = sampled_hash(put(tmp_path, "a", bytes(data)))
    data[65_536 + 100] ^= 1  # between the first block and the second
    assert sampled_hash(put(tmp_path, "b", bytes(data))) == first
    data[65_535] ^= 1
    assert sampled_hash(put(tmp_path, "c", bytes(data))) != first
