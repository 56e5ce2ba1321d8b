"""Shards as the stages after the corpus read them, also those that a stranger made and sealed."""

from pathlib import Path

import pytest
import zstandard
from tests.rows import each_row

from bertwright.core.errors import ArtifactError
from bertwright.corpus import text
from bertwright.corpus.text import documents_in


def packed(path: Path, data: bytes) -> Path:
    path.write_bytes(zstandard.compress(data))
    return path


def in_blocks(data: bytes) -> bytes:
    """Each byte in a block of its own, so that any few bytes of what is packed unpack to a few."""
    packing = zstandard.ZstdCompressor().compressobj()
    blocks = [packing.compress(bytes([byte])) + packing.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for byte in data]
    return b"".join([*blocks, packing.flush()])


@each_row("sip", [1, 2, 3, 5, 4096])
def test_blank_lines_separate_documents_at_any_block_end(
    sip: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "_SIP", sip)
    whole = tmp_path / "a.txt.zst"
    whole.write_bytes(in_blocks("Egy.\nKettő.\n\nHárom.\n\n\n\nNégy.\n".encode()))
    assert list(documents_in(whole)) == [["Egy.", "Kettő."], ["Három."], [""], ["Négy."]]


@each_row(
    ("data", "says"),
    [
        (zstandard.compress(b"One.\n\n\xff\xfe\n\n"), "can't decode byte 0xff"),
        (zstandard.compress(b"One.\n\ntwo \xff"), "can't decode byte 0xff"),
        (b"no frame", "is damaged: "),
        (zstandard.compress(b"One.\n\nTwo.\n\n")[:-1], "is incomplete, or other bytes follow it"),
        (b"", "is incomplete, or other bytes follow it"),
        (zstandard.compress(b"One.\n\n") * 2, "is incomplete, or other bytes follow it"),
        (zstandard.compress(bytes(range(256)) * 40)[:40] + b"\xff" * 40, "is damaged: "),
    ],
)
def test_binary_formats_are_refused_by_name(data: bytes, says: str, tmp_path: Path) -> None:
    shard = tmp_path / "00000.txt.zst"
    shard.write_bytes(data)
    with pytest.raises(ArtifactError, match=says) as caught:
        list(documents_in(shard))
    assert str(caught.value).startswith(f"{shard} is damaged: ")
    assert str(caught.value).endswith(". Restore the file, or run its stage again.")


def test_a_document_without_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_TEXT", 2**21)
    shard = packed(tmp_path / "00000.txt.zst", b"line\n" * 2**20)
    with pytest.raises(ArtifactError, match="a document has more than 2,097,152 bytes"):
        list(documents_in(shard))
