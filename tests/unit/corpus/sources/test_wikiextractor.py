import json
from pathlib import Path

import pytest
from tests.rows import each_row
from tests.unit.corpus.sources.reading import Read

from bertwright.corpus.errors import SourceError

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
