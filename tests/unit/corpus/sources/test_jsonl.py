import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from tests.rows import each_row
from tests.unit.corpus.sources.reading import Read

from bertwright.corpus.errors import SourceError

ROWS = [{"id": i, "title": f"{i}. híd", "text": f"{i}. híd\nElső sor.\n\nMásodik\0 sor.", "n": [1]} for i in range(200)]
LINES = "".join(json.dumps(row, ensure_ascii=i % 2 == 0) + "\n" for i, row in enumerate(ROWS)).encode()


@pytest.mark.usefixtures("small_pieces")
@each_row("pack", [bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_any_packaging(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "a").write_bytes(pack(LINES))
    read = Read(tmp_path / "a", tmp_path)
    assert len(read.names) > 5
    assert read.texts == [["Első sor.", "Második sor."]] * 200  # the first line repeats the title
    assert read.facts("id") == list(range(200))
    assert read.facts("title")[7] == "7. híd"
    assert read.facts("source")[0] == "jsonl"
    assert read.counts["source_bytes"] == len(LINES)
    assert all(state["ended"] for state in read.states)


def test_facts_are_taken_where_they_are(tmp_path: Path) -> None:
    rows = [
        {"body": "Szöveg.", "id": "12", "revid": 34.0, "url": "https://x/y", "title": "Cím"},
        {"body": None, "title": None, "id": [1]},
        {"body": ""},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "a.jsonl").write_text(lines)
    first, second, third = Read(tmp_path / "a.jsonl", tmp_path, text="body", licence="CC0-1.0").articles
    assert first.facts == {
        "id": "12", "title": "Cím", "revision": 34, "url": "https://x/y", "source": "jsonl", "licence": "CC0-1.0"
    }  # fmt: skip
    assert (second.facts["id"], second.facts["title"], second.paragraphs) == (lines.index("\n") + 1, "", [])
    assert third.paragraphs == []


def test_halves_of_characters_are_replaced(tmp_path: Path) -> None:
    row = {"text": "Fél\ud83d és egész \U0001f600.", "title": "C\ud800", "id": "\udfff", "url": "u\udc00"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    read = Read(tmp_path / "a.jsonl", tmp_path)
    assert read.texts == [["Fél\ufffd és egész \U0001f600."]]
    assert [read.facts(key) for key in ("title", "id", "url")] == [["C\ufffd"], ["\ufffd"], ["u\ufffd"]]


@each_row("pack", [bytes, zstandard.compress])
def test_a_bad_byte_is_replaced_and_counted_as_in_a_dump(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """One of them ended the corpus stage; the same in a dump was counted."""
    lines = [b'{"text": "H\xe1rom \xef\xbf\xbd."}', b'{"text": "N\xc3\xa9gy."}', b'{"text": "\xff"}']
    (tmp_path / "a.jsonl").write_bytes(pack(b"\n".join(lines) + b"\n"))
    read = Read(tmp_path / "a.jsonl", tmp_path)
    assert read.texts == [["H\ufffdrom \ufffd."], ["Négy."], ["\ufffd"]]
    assert read.counts["replaced_characters"] == 2 and all(state["ended"] for state in read.states)


def test_a_file_that_ends_inside_a_character_loses_its_last_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "Egy."}\n{"text": "H\xc3')
    read = Read(tmp_path / "a.jsonl", tmp_path)
    assert read.texts == [["Egy."]] and read.states[-1]["lost_bytes"] == 12 and not read.states[-1]["ended"]


@each_row(
    ("line", "says"),
    [
        (b'{"text": "half', r"line 3 is not JSON \(.*\)\. Correct the line"),
        (b'{"text": ' + b"[" * 100_000 + b"}", "line 3 is not JSON"),
        (b"[1]", r"line 3 is not a JSON object but '\[1\]'"),
        (b'{"body": "x"}', r"line 3 has no key 'text'; its keys are 'body'\. Name the key .* in corpus\.source\.text"),
        (b'{"text": 5}', "line 3 has, under 'text', not text but '5'"),
        (b'{"text": "\xff\xfe\xfd"}', "is not valid UTF-8 at byte 29 of its text"),
    ],
)
@each_row("pack", [bytes, zstandard.compress])
def test_a_bad_line_has_a_place(tmp_path: Path, line: bytes, says: str, pack: Callable[[bytes], bytes]) -> None:
    path, good = tmp_path / "a.jsonl", b'{"text": "Szia."}\n'
    path.write_bytes(pack(good + b"\n" + line + b"\n" + good))
    with pytest.raises(SourceError, match=says) as caught:
        Read(path, tmp_path)
    assert str(path) in str(caught.value)


def test_a_cut_file_keeps_its_whole_lines(tmp_path: Path) -> None:
    torn = LINES.rindex(b"\n", 0, 5000) + 1
    whole, last = LINES[:torn].count(b"\n"), LINES.rindex(b"\n", 0, torn - 1) + 1
    for name, data in {"a": LINES[:5000], "b": gzip.compress(LINES[:5000]) + gzip.compress(LINES[5000:])[:12]}.items():
        (tmp_path / name).write_bytes(data)
        read = Read(tmp_path / name, tmp_path)
        assert len(read.articles) == whole, name
        (state,) = read.states
        assert state["last"] == f"the document at byte {last:,}"
        assert not state["ended"] and state["lost_bytes"] == 5000 - torn


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.corpus.sources.records.MAX_DOCUMENT", 2**20)
    (tmp_path / "a").write_bytes(gzip.compress(b'{"text": "' + b"x" * 30_000_000))
    with pytest.raises(SourceError, match="no page or document ends within"):
        Read(tmp_path / "a", tmp_path)
