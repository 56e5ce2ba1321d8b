import bz2
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.file import Source, examine
from bertwright.corpus.sources.pieces import Piece, ranges, read, spooled

pytestmark = pytest.mark.usefixtures("small_pieces")


def pieces_of(path: Path, folder: Path) -> tuple[Source, list[Piece]]:
    source = examine(path)
    return source, ranges(source, 0) or list(spooled(source, 0, folder))


def test_pieces_of_any_packaging_are_whole_pages_and_together_the_whole(
    tmp_path: Path, packagings: Callable[..., dict[str, bytes]], bridges: list[str], export: Callable[..., bytes]
) -> None:
    for name, data in packagings(bridges).items():
        folder = tmp_path / f"{name} pieces"
        folder.mkdir()
        (tmp_path / name).write_bytes(data)
        source, pieces = pieces_of(tmp_path / name, folder)
        assert len(pieces) > 5, name
        texts = [b"".join(read(source, piece)) for piece in pieces]
        assert b"".join(texts).removeprefix(b"\xef\xbb\xbf") == export(bridges), name
        assert all(text.lstrip().startswith((b"<page>", b"</mediawiki>")) for text in texts[1:]), name
        assert sum(piece.progress for piece in pieces) == source.size, name
        assert [piece.last for piece in pieces] == [False] * (len(pieces) - 1) + [True], name
        assert [piece.name for piece in pieces] == sorted(piece.name for piece in pieces)


def test_only_what_can_be_cut_is_read_from_many_places(
    tmp_path: Path, packagings: Callable[..., dict[str, bytes]], bridges: list[str]
) -> None:
    parallel = {}
    for name, data in packagings(bridges).items():
        (tmp_path / name).write_bytes(data)
        parallel[name[0]] = ranges(examine(tmp_path / name), 0) is not None
    assert parallel == {"a": True, "b": False, "c": True, "d": False, "e": False, "f": True, "g": False, "h": False}


def test_pieces_of_plain_text_end_at_blank_lines(tmp_path: Path) -> None:
    text = "".join(f"{'Egy sor. ' * 20}\n{i}\n \n\n" for i in range(100)).encode()
    for name, data in {"a.txt": text, "b.txt.xz": lzma.compress(text), "c.txt.bz2": bz2.compress(text)}.items():
        (tmp_path / name).write_bytes(data)
        source, pieces = pieces_of(tmp_path / name, tmp_path)
        blocks = [b"".join(read(source, piece)) for piece in pieces]
        assert len(blocks) > 5
        assert b"".join(blocks) == text
        assert all(block.endswith(b"\n") and block.split(b"\n")[-2].strip() == b"" for block in blocks)
        assert [piece.start for piece in pieces][1] == len(blocks[0])


def test_a_piece_whose_part_exists_is_not_written_again(
    tmp_path: Path, export: Callable[..., bytes], bridges: list[str]
) -> None:
    (tmp_path / "a.xml.xz").write_bytes(lzma.compress(export(bridges)))
    source = examine(tmp_path / "a.xml.xz")
    (tmp_path / "0000-000002.json").write_text("{}")
    written = [piece.spool for piece in spooled(source, 0, tmp_path) if piece.spool and piece.spool.is_file()]
    assert tmp_path / "0000-000001.piece.zst" in written
    assert tmp_path / "0000-000002.piece.zst" not in written


def test_a_stream_without_end_in_the_middle_is_damage(
    tmp_path: Path, multistream: Callable[..., bytes], bridges: list[str]
) -> None:
    data = multistream(bridges)
    second = data.index(b"BZh", 1)
    (tmp_path / "a.xml.bz2").write_bytes(data[: second - 20] + data[second:])
    source = Source(tmp_path / "a.xml.bz2", "bz2", "utf-8", "dump")
    pieces = ranges(source, 0)
    assert pieces
    with pytest.raises(SourceError, match="damaged"):
        list(read(source, pieces[0]))
