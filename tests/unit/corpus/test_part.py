"""The files of a part: what they say of documents and paragraphs, and when they count as whole."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.rows import each_row

from bertwright.corpus.part import (
    DOCUMENTS,
    PARAGRAPHS,
    PartWriter,
    is_written,
    map_array,
    read_array,
    unpack,
    write_array,
)
from bertwright.corpus.text import FACTS, TEXT, documents_in

Write = Callable[..., Path]


def test_sizes_are_those_of_the_text_to_the_byte(write_part: Write, tmp_path: Path) -> None:
    """Paragraphs are cut out of the text by these sizes alone."""
    documents = [[["Árvíz.", "Tűrő 日本 𐍈."], ["x"]], [["a"]], [["b c", "d"], ["e"], ["f"]]]
    part = write_part(tmp_path / "0000", documents)
    rows, text = read_array(part.with_suffix(PARAGRAPHS)), unpack(part.with_suffix(TEXT))
    assert rows["sentences"].tolist() == [2, 1, 1, 2, 1, 1]
    place, pieces = 0, list[str]()
    owners = np.repeat(np.arange(3), read_array(part.with_suffix(DOCUMENTS))["paragraphs"])
    for number, size in enumerate(rows["bytes"].tolist()):
        pieces.append(text[place : place + size].decode())
        place += size + (number + 1 == len(rows) or owners[number + 1] != owners[number])
    assert pieces == ["Árvíz.\nTűrő 日本 𐍈.\n", "x\n", "a\n", "b c\nd\n", "e\n", "f\n"] and place == len(text)
    assert list(documents_in(part.with_suffix(TEXT))) == [
        [sentence for paragraph in document for sentence in paragraph] for document in documents
    ]


def test_hashes_cover_document_text_and_casefolded_paragraphs(write_part: Write, tmp_path: Path) -> None:
    part = write_part(
        tmp_path / "0000", [[["Straße A", "b"]], [["STRASSE A", "b"]], [["Straße A b"]], [["Straße A", "b"]]]
    )
    documents, paragraphs = (read_array(part.with_suffix(suffix)) for suffix in (DOCUMENTS, PARAGRAPHS))
    assert len(np.unique(documents[["high", "low"]])) == 3 and documents[0] == documents[3]
    assert len(np.unique(paragraphs[["high", "low"]])) == 1, "neither case nor the cut into sentences matters"


def test_a_part_of_no_document_has_its_files(tmp_path: Path) -> None:
    files = PartWriter(tmp_path / "0000").finish()
    assert sorted(path.name for path in files) == [
        "0000.documents.npy",
        "0000.jsonl.zst",
        "0000.paragraphs.npy",
        "0000.txt.zst",
    ]
    assert [len(read_array(path)) for path in sorted(files) if path.suffix == ".npy"] == [0, 0]
    assert unpack(tmp_path / "0000.txt.zst") == b"" and list(documents_in(tmp_path / "0000.txt.zst")) == []


def test_facts_are_one_line_each_in_the_script_of_the_text(tmp_path: Path) -> None:
    writer = PartWriter(tmp_path / "0000")
    writer.add(["a"], [0], {"title": "Két\nsor \u2028 日本", "id": 7})
    writer.add(["b"], [0], {"title": "", "id": 8})
    writer.finish()
    lines = unpack(tmp_path / f"0000{FACTS}").split(b"\n")
    assert [json.loads(line) for line in lines[:-1]] == [
        {"title": "Két\nsor \u2028 日本", "id": 7, "paragraphs": [0]},
        {"title": "", "id": 8, "paragraphs": [0]},
    ]
    assert "日本".encode() in lines[0]


@each_row("damage", [b"", b"\x93NUMPY", None])
def test_an_array_counts_as_written_only_as_it_was(damage: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    write_array(path, np.arange(6).reshape(2, 3))
    assert is_written(path) and read_array(path).tolist() == map_array(path).tolist() == [[0, 1, 2], [3, 4, 5]]
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    assert not is_written(path)
