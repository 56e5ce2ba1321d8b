from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tests.unit.corpus.sources.reading import Read

TEXT = "Első sor.\nMásodik sor.\n\nHarmadik\nsor.\n"


@each_row(
    ("lines", "texts", "ids"),
    [
        ("paragraphs", [["Első sor.", "Második sor."], ["Harmadik", "sor."]], [0, 26]),
        ("sentences", [["Első sor.", "Második sor."], ["Harmadik", "sor."]], [0, 26]),
        ("articles", [["Első sor."], ["Második sor."], ["Harmadik"], ["sor."]], [0, 11, 26, 35]),
        ("wrapped", [["Első sor. Második sor.", "Harmadik sor."]], [0]),
    ],
)
def test_the_four_layouts(tmp_path: Path, lines: str, texts: list[list[str]], ids: list[int]) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    read = Read(tmp_path / "a.txt", tmp_path, lines=lines)
    assert read.texts == texts
    assert read.facts("id") == ids
    assert read.counts == {"source_bytes": len(TEXT.encode())}


def test_facts_of_a_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    facts: dict[str, Any] = {"id": 0, "title": "", "revision": 0, "url": "", "source": "text", "licence": "unknown"}
    assert Read(tmp_path / "a.txt", tmp_path).articles[0].facts == facts
    named = Read(tmp_path / "a.txt", tmp_path, name="regények", licence="CC0-1.0").articles[0].facts
    assert named == facts | {"source": "regények", "licence": "CC0-1.0"}


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("lines", ["paragraphs", "articles"])
def test_pieces_leave_no_trace(tmp_path: Path, lines: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{i}. mondat.\n" + "\n" * (i % 3 == 0) for i in range(2000)))
    cut = Read(tmp_path / "a.txt", tmp_path, lines=lines)
    monkeypatch.undo()
    whole = Read(tmp_path / "a.txt", tmp_path, lines=lines)
    assert len(cut.names) > 5 and len(whole.names) == 1
    assert cut.articles == whole.articles


def test_blank_documents_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf\n\n \x07 \n\na\n\n\x01\n")
    assert Read(tmp_path / "a.txt", tmp_path).texts == [["a"]]
