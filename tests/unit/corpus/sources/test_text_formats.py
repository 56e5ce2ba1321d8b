import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.rows import each_row
from tests.unit.corpus.sources.reading import Read

from bertwright.corpus.errors import SourceError

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


FACTS = ("id", "title", "url")


def doc(number: int, title: str, *paragraphs: str) -> str:
    """What WikiExtractor 3 writes for an article."""
    head = f'<doc id="{number}" url="https://hu.wikipedia.org/wiki?curid={number}" title="{title}">'
    return "\n".join([head, title, "", *paragraphs, "", "</doc>", ""])


def test_documents_in_folders(tmp_path: Path) -> None:
    for name, numbers in {"AA/wiki_00": (3, 4), "AA/wiki_01": (1,), "AB/wiki_00": (2,)}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = "".join(doc(n, f"{n}. &quot;híd&quot;", "Egy &lt;b&gt; &amp;amp; más.", "Két.") for n in numbers)
        (tmp_path / name).write_text(text.replace("&quot;", '"'))
    read = Read(tmp_path, tmp_path / "AA")
    assert read.source.files[0].format == "wikiextractor"
    assert read.texts == [["Egy <b> &amp; más.", "Két."]] * 4
    assert [article.facts["id"] for article in read.articles] == ["3", "4", "1", "2"]
    assert read.facts("title")[0] == '3. "híd"'
    assert read.facts("url")[0] == "https://hu.wikipedia.org/wiki?curid=3"


def test_json_output_reads_the_same(tmp_path: Path) -> None:
    (tmp_path / "doc").write_text(doc(1, "Híd", "Egy.", "Két.") + doc(2, "Út", "Három."))
    rows = [
        {"id": "1", "revid": "9", "url": "https://hu.wikipedia.org/wiki?curid=1", "title": "Híd", "text": "Egy.\nKét."},
        {"id": "2", "url": "https://hu.wikipedia.org/wiki?curid=2", "title": "Út", "text": "Út\n\nHárom."},
    ]
    (tmp_path / "json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made, expected = (Read(tmp_path / name, tmp_path, format="wikiextractor") for name in ("json", "doc"))
    assert made.texts == expected.texts == [["Egy.", "Két."], ["Három."]]
    assert all(made.facts(name) == expected.facts(name) for name in FACTS)


ESCAPED = "Kő &amp; Társa &lt;b&gt; &amp;amp; &amp;nbsp;"
PLAIN = "Kő & Társa <b> &amp; &nbsp;"


def row(text: str) -> dict[str, str]:
    """What WikiExtractor's --json writes of an article, and what tables are made of."""
    address = "https://hu.wikipedia.org/wiki?curid=1"
    return {"id": "1", "revid": "9", "url": address, "title": "&quot;A&quot; &amp; B", "text": text}


@each_row(("text", "expected"), [(ESCAPED, PLAIN), ("x < y & &lt;b&gt;", "x < y & &lt;b&gt;"), ("&lt;b&gt;", "<b>")])
def test_escaped_marks_are_characters_in_json_too(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(row(text)) + "\n")
    read = Read(tmp_path / "a.jsonl", tmp_path)
    assert (read.texts, read.facts("title")) == ([[expected]], ['"A" & B'])
    assert Read(put_doc(tmp_path, text), tmp_path).texts == [[expected]]


def put_doc(folder: Path, text: str) -> Path:
    (folder / "doc").write_text(doc(1, "A", text))
    return folder / "doc"


def test_escaped_marks_are_characters_in_tables_too(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'bertwright[formats]'")
    from pyarrow.parquet import write_table

    write_table(pa.Table.from_pylist([row(ESCAPED)]), tmp_path / "a.parquet")
    read = Read(tmp_path / "a.parquet", tmp_path)
    assert (read.texts, read.facts("title")) == ([[PLAIN]], ['"A" & B'])


def test_json_of_other_programs_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"url": "https://example.org/?id=3", "text": ESCAPED}) + "\n")
    assert Read(tmp_path / "a.jsonl", tmp_path).texts == [[ESCAPED]]
    named = Read(tmp_path / "a.jsonl", tmp_path, format="wikiextractor")
    assert named.texts == [[PLAIN]], "unless the recipe says that WikiExtractor made it"


def test_empty_and_old_documents(tmp_path: Path) -> None:
    text = (
        '<doc id="1" url="u" title="A">\n</doc>\n<doc id="2" revid="7" url="u" title="B">\r\nB\r\n\r\nSzöveg.\r\n</doc>'
    )
    (tmp_path / "a").write_text(text, newline="")
    read = Read(tmp_path / "a", tmp_path)
    assert [[line.strip() for line in lines] for lines in read.texts] == [[], ["Szöveg."]]
    assert read.facts("revision") == [0, "7"]
    assert read.states[0]["ended"]


def test_document_without_end_is_skipped(tmp_path: Path) -> None:
    text = doc(1, "Híd", "Egy.") + doc(2, "Út", "Kettő.")[:-10]
    (tmp_path / "a").write_text(text)
    read = Read(tmp_path / "a", tmp_path)
    assert read.facts("id") == ["1"]
    assert not read.states[0]["ended"] and read.states[0]["lost_bytes"] > 0
    assert read.states[0]["last"] == "the document at byte 0"
    (tmp_path / "b").write_text(doc(2, "Út", "Kettő.")[:-10])
    assert "last" not in Read(tmp_path / "b", tmp_path).states[0]


def test_titles_are_as_the_dump_escapes_them(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(doc(1, "&quot;Hősök&quot; &amp;amp; mások", "Egy."))
    read = Read(tmp_path / "a", tmp_path)
    assert (read.facts("title"), read.texts) == (['"Hősök" &amp; mások'], [["Egy."]])


def test_malformed_document_has_a_position(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(doc(1, "Híd", "Egy.") + "\nSzöveg.\n" + doc(2, "Út", "Két."))
    with pytest.raises(
        SourceError, match="line 8 should begin a document .* but is 'Szöveg.'. Run WikiExtractor again"
    ):
        Read(tmp_path / "a", tmp_path)
