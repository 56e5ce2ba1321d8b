import bz2
import gzip
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.task_records import mark_done
from bertwright.core.work_split import SINGLE
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.detect import examine
from bertwright.corpus.sources.file import File, Piece
from bertwright.corpus.sources.known import format_of
from bertwright.corpus.sources.pieces import read

pytestmark = pytest.mark.usefixtures("small_pieces")


def splits(file: File, config: SourceConfig, folder: Path) -> Iterator[Piece]:
    return format_of(file.format).splits(file, config, 0, 0, folder, SINGLE)


def pieces_of(path: Path, folder: Path, **settings: str) -> tuple[File, list[Piece]]:
    file = examine(path)
    return file, list(splits(file, SourceConfig(path=str(path), **settings), folder))


def test_pieces_are_whole_pages_for_any_packaging(
    tmp_path: Path, packagings: Callable[..., dict[str, bytes]], bridges: list[str], export: Callable[..., bytes]
) -> None:
    for name, data in packagings(bridges).items():
        folder = tmp_path / f"{name} pieces"
        folder.mkdir()
        (tmp_path / name).write_bytes(data)
        file, found = pieces_of(tmp_path / name, folder)
        assert len(found) > 5, name
        texts = [b"".join(read(file, piece)) for piece in found]
        assert b"".join(texts).removeprefix(b"\xef\xbb\xbf") == export(bridges), name
        assert all(text.lstrip().startswith((b"<page>", b"</mediawiki>")) for text in texts[1:]), name
        assert sum(piece.progress for piece in found) == file.size, name
        assert [piece.last for piece in found] == [False] * (len(found) - 1) + [True], name
        assert [piece.name for piece in found] == sorted(piece.name for piece in found)


def test_only_what_can_be_cut_is_read_from_many_places(
    tmp_path: Path, packagings: Callable[..., dict[str, bytes]], bridges: list[str]
) -> None:
    parallel = {}
    for name, data in packagings(bridges).items():
        (tmp_path / name).write_bytes(data)
        parallel[name[0]] = all(piece.spool is None for piece in pieces_of(tmp_path / name, tmp_path)[1])
    assert [name for name in sorted(parallel) if parallel[name]] == ["a", "c", "f"]


def test_pieces_of_plain_text_end_at_blank_lines(tmp_path: Path) -> None:
    text = "".join(f"{'Egy sor. ' * 20}\n{i}\n \n\n" for i in range(100)).encode()
    for name, data in {"a.txt": text, "b.txt.xz": lzma.compress(text), "c.txt.bz2": bz2.compress(text)}.items():
        (tmp_path / name).write_bytes(data)
        file, found = pieces_of(tmp_path / name, tmp_path)
        blocks = [b"".join(read(file, piece)) for piece in found]
        assert len(blocks) > 5
        assert b"".join(blocks) == text
        assert all(block.endswith(b"\n") and block.split(b"\n")[-2].strip() == b"" for block in blocks)
        assert [piece.start for piece in found][1] == len(blocks[0])


@each_row("pack", [bytes, lzma.compress])
@each_row(
    ("settings", "record", "end"),
    [
        ({"lines": "articles"}, "Az {0}. szöveg egyetlen sor.\n", b"\n"),
        ({"format": "jsonl"}, '{{"text": "Az {0}. szöveg\\nsorai."}}\n', b"}\n"),
        ({}, '<doc id="{0}" url="u" title="{0}. híd">\n{0}. híd\n\nEgy.\n\n</doc>\n', b"</doc>\n"),
    ],
)
def test_pieces_of_records_end_where_a_record_does(
    tmp_path: Path, settings: dict[str, str], record: str, end: bytes, pack: Callable[[bytes], bytes]
) -> None:
    text = "".join(record.format(i) for i in range(300)).encode()
    (tmp_path / "a").write_bytes(pack(text))
    file, found = pieces_of(tmp_path / "a", tmp_path, **settings)
    blocks = [b"".join(read(file, piece)) for piece in found]
    assert len(blocks) > 3 and b"".join(blocks) == text
    assert all(block.endswith(end) for block in blocks)


def test_sequential_file_is_spooled_piece_by_piece(tmp_path: Path) -> None:
    text = b"".join(b"%d\n\n" % i for i in range(20_000))
    (tmp_path / "a.gz").write_bytes(gzip.compress(text))
    source = SourceConfig(path="a")
    for i, _ in enumerate(splits(File(tmp_path / "a.gz", "text", "gz"), source, tmp_path)):
        assert len(list(tmp_path.glob("*.piece.zst"))) == i + 1
    assert i > 10


def test_a_wrapped_text_is_one_piece(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Egy sor.\n\n" * 1000)
    assert len(pieces_of(tmp_path / "a.txt", tmp_path, lines="wrapped")[1]) == 1


def test_a_piece_whose_part_exists_is_not_written_again(
    tmp_path: Path, export: Callable[..., bytes], bridges: list[str]
) -> None:
    (tmp_path / "a.xml.xz").write_bytes(lzma.compress(export(bridges)))
    mark_done(tmp_path / "0000-000002.json")
    _, found = pieces_of(tmp_path / "a.xml.xz", tmp_path)
    written = [piece.spool for piece in found if piece.spool and piece.spool.is_file()]
    assert tmp_path / "0000-000001.piece.zst" in written
    assert tmp_path / "0000-000002.piece.zst" not in written


def test_a_stream_without_end_in_the_middle_is_damage(
    tmp_path: Path, multistream: Callable[..., bytes], bridges: list[str]
) -> None:
    data = multistream(bridges)
    second = data.index(b"BZh", 1)
    (tmp_path / "a.xml.bz2").write_bytes(data[: second - 20] + data[second:])
    file = File(tmp_path / "a.xml.bz2", "dump", "bz2")
    found = list(splits(file, SourceConfig(path="a"), tmp_path))
    assert found[0].spool is None
    with pytest.raises(SourceError, match="damaged"):
        list(read(file, found[0]))
