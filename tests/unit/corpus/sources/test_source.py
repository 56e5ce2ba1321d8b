import hashlib
import os
from pathlib import Path

import pytest
from tests.unit.corpus.sources.reading import Read

from bertwright.core.files import sha256_of
from bertwright.core.log import SILENT
from bertwright.corpus.config import CorpusConfig, SourceConfig
from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.source import Source, open_source


@pytest.fixture
def novels(tmp_path: Path) -> Path:
    """A folder of three texts, with marks that other programs leave."""
    for name in ("b.txt", "a.txt", "c/d.txt", ".hidden", "_SUCCESS", "c/.crc"):
        path = tmp_path / "novels" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name if name.endswith("txt") else "")
    return tmp_path / "novels"


def opened(path: object) -> Source:
    return open_source(SourceConfig(path=str(path)), Path("downloads"), SILENT)


def names(path: object) -> list[str]:
    return [file.path.name for file in opened(path).files]


def test_files_folders_and_patterns(novels: Path) -> None:
    assert names(novels) == ["a.txt", "b.txt", "d.txt"]
    assert names(novels / "*.txt") == ["a.txt", "b.txt"]
    assert names(novels / "**" / "*.txt") == ["a.txt", "b.txt", "d.txt"]
    assert names(novels / "[bc]*") == ["b.txt", "d.txt"]
    assert names(novels / "a.txt") == ["a.txt"]
    (novels / "[x].txt").write_text("a name that looks like a pattern")
    assert names(novels / "[x].txt") == ["[x].txt"]


def test_workers_elsewhere_find_the_same_files(novels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(novels)
    assert opened("a.txt").files[0].path == novels / "a.txt"


def test_what_a_source_is_called(novels: Path) -> None:
    assert [opened(path).name for path in (novels, novels / "*.txt", novels / "a.txt")] == ["novels", "novels", "a"]
    assert str(opened(novels)) == "novels (text, 3 files, 17 bytes)"


def test_documents_of_all_files_are_one_source(novels: Path, tmp_path: Path) -> None:
    read = Read(novels, tmp_path)
    assert read.texts == [["a.txt"], ["b.txt"], ["c/d.txt"]]
    assert read.names == ["0000-000000", "0000-000001", "0000-000002"]


def test_hashes(novels: Path) -> None:
    alone, together = opened(novels / "a.txt"), opened(novels)
    hashes = [hashlib.sha256(name).hexdigest() for name in (b"a.txt", b"b.txt", b"c/d.txt")]
    assert (alone.sha256, together.sha256) == (hashes[0], sha256_of(hashes))
    before = together.sampled_hash
    (novels / "c").rename(novels / "e")
    assert opened(novels).sampled_hash == before
    (novels / "b.txt").write_text("B.txt")
    assert opened(novels).sampled_hash != before


def test_files_of_up_to_four_mebibytes_are_hashed_whole(tmp_path: Path) -> None:
    for i in range(20):
        (tmp_path / f"{i:02}.txt").write_bytes(b"A line.\n" * 100_000)
    before = opened(tmp_path).sampled_hash
    with (tmp_path / "07.txt").open("r+b") as handle:
        handle.seek(100_000)
        handle.write(b"X")
    assert opened(tmp_path).sampled_hash != before


def test_nothing_is_found(novels: Path) -> None:
    with pytest.raises(SourceError, match=r"no file matches .*\*\.xml\. Correct the pattern"):
        opened(novels / "*.xml")
    (novels / "empty").mkdir()
    with pytest.raises(SourceError, match="there is no file in .*empty. Set corpus.source to"):
        opened(novels / "empty")
    with pytest.raises(SourceError, match="cannot read .*none.txt: No such file"):
        opened(novels / "none.txt")


def test_one_source_has_one_format(novels: Path) -> None:
    (novels / "x.jsonl").write_text('{"text": "x"}\n')
    with pytest.raises(
        SourceError, match=r"several formats: a\.txt is text, x\.jsonl is jsonl.* such as novels/\*\.jsonl"
    ):
        opened(novels)


def test_an_empty_file_among_others_is_named(novels: Path) -> None:
    (novels / "aa.txt").write_text("")
    with pytest.raises(SourceError, match="aa.txt is empty"):
        opened(novels)


def test_links(novels: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "e.txt").write_text("e")
    (novels / "z").symlink_to(tmp_path / "elsewhere")
    assert names(novels) == ["a.txt", "b.txt", "d.txt", "e.txt"]
    (tmp_path / "elsewhere" / "back").symlink_to(novels)
    with pytest.raises(SourceError, match="z/back is a link to a folder that contains it. Remove the link"):
        opened(novels)
    (tmp_path / "elsewhere" / "back").unlink()
    (novels / "loop").symlink_to("loop")
    with pytest.raises(SourceError, match="cannot read .*loop: Too many levels of symbolic links"):
        opened(novels)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_folder_that_may_not_be_read(novels: Path) -> None:
    (novels / "c").chmod(0)
    try:
        with pytest.raises(SourceError, match="cannot read .*c: Permission denied"):
            opened(novels)
    finally:
        (novels / "c").chmod(0o700)


def test_a_recipe_may_say_little_or_much() -> None:
    def sources(source: object) -> tuple[SourceConfig, ...]:
        return CorpusConfig(source=source, language="hu").source  # type: ignore[arg-type]

    assert sources("a") == sources({"path": "a"}) == sources(["a"]) == (SourceConfig(path="a"),)
    assert sources(["a", {"path": "b", "weight": 2}]) == (SourceConfig(path="a"), SourceConfig(path="b", weight=2.0))
