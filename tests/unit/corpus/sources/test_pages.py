"""Files and folders of HTML pages."""

import bz2
from pathlib import Path

import pytest
from tests.rows import each_row
from tests.unit.corpus.sources.reading import Read

from bertwright.corpus.config import CorpusConfig, FilterConfig
from bertwright.corpus.errors import SourceError
from bertwright.corpus.run import run
from bertwright.corpus.sources.detect import examine
from bertwright.corpus.text import sentences

PAGE = "<!DOCTYPE html>\n<html><head>{head}</head><body><p>Élő szöveg, {number}.</p></body></html>\n"


def put(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


def test_a_folder_of_pages_has_one_document_a_file(tmp_path: Path) -> None:
    put(tmp_path, "pages/A/Híd", PAGE.format(head="<title>Híd</title>", number=1))
    put(tmp_path, "pages/A/St._István", PAGE.format(head="", number=2))
    put(tmp_path, "pages/b.html", "<html><meta http-equiv=refresh content='0; url=A/Híd'></html>")
    found = Read(tmp_path / "pages", tmp_path)
    assert found.texts == [["Élő szöveg, 1."], ["Élő szöveg, 2."]]
    assert found.facts("title") == ["Híd", "St. István"] and found.counts["redirects"] == 1


def test_what_is_saved_beside_pages_is_left_out(tmp_path: Path) -> None:
    put(tmp_path, "pages/Híd.html", PAGE.format(head="", number=1))
    for name in ("Híd_files/a.png", "Híd_files/a.css", "-/a.js"):
        (tmp_path / "pages" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "pages" / name).write_bytes(b"\x89PNG\0\0\0\0")
    assert Read(tmp_path / "pages", tmp_path).texts == [["Élő szöveg, 1."]]
    put(tmp_path, "texts/a.txt", "Élő szöveg.")
    (tmp_path / "texts" / "b.png").write_bytes(b"\x89PNG\0\0\0\0")
    with pytest.raises(SourceError, match=r"b\.png is not text"):
        Read(tmp_path / "texts", tmp_path)


def test_a_page_of_parsoid_names_its_revision_and_licence(tmp_path: Path) -> None:
    about = '<html about="https://hu.wikipedia.org/wiki/Special:Redirect/revision/845493773">'
    head = '<link rel="dc:isVersionOf" href="//hu.wikipedia.org/wiki/H%C3%ADd">'
    found = Read(put(tmp_path, "a", PAGE.format(head=head, number=1).replace("<html>", about)), tmp_path)
    assert found.articles[0].facts == {
        "id": 0, "title": "a", "revision": 845493773, "url": "https://hu.wikipedia.org/wiki/H%C3%ADd",
        "source": "html", "licence": "CC BY-SA",
    }  # fmt: skip


def test_small_files_are_read_together_with_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        f"Az {i}. lap első mondata {i * 7919} szóval. A második mondata is az övé, {i}. Ez a vége." for i in range(9)
    ]
    for number, text in enumerate(texts):
        put(tmp_path, f"pages/{number}", PAGE.format(head="", number=number).replace("Élő szöveg", text))
    (tmp_path / "pages" / "3").write_bytes(bz2.compress((tmp_path / "pages" / "3").read_bytes()))
    off = FilterConfig(enabled=False)
    config = CorpusConfig(source=str(tmp_path / "pages"), language="hu", filter=off)
    found = []
    for number, size in enumerate((1, 500, 10**6)):
        monkeypatch.setattr("bertwright.corpus.parts.PLAIN_BYTES", size)
        corpus = run(config, tmp_path / str(number))
        found.append((list(sentences(corpus)), corpus.counts["documents"], corpus.counts["source_bytes"]))
    assert found[0] == found[1] == found[2] and found[0][1] == 9


def test_pages_may_follow_each_other_in_a_file(tmp_path: Path) -> None:
    pages = "".join(PAGE.format(head="", number=number) for number in range(3))
    for text in (pages, pages.replace("\n", ""), pages.replace("<!DOCTYPE", "<!doctype")):
        assert [texts[0] for texts in Read(put(tmp_path, "a", text), tmp_path).texts] == [
            f"Élő szöveg, {number}." for number in range(3)
        ]


@each_row(
    ("declared", "encoding"),
    [
        ("<meta charset=iso-8859-2>", "iso-8859-2"),
        ("<meta http-equiv='Content-Type' content='text/html; charset=windows-1250'>", "cp1250"),
        ("<meta charset='utf-8'>", "utf-8"),
        ("<meta charset='no-such-code'>", "utf-8"),
        ("<meta charset=base64>", "utf-8"),
        ("<meta charset=latin1>", "cp1252"),
        ("", "utf-16"),
    ],
)
def test_the_encoding_is_the_one_that_a_page_declares(tmp_path: Path, declared: str, encoding: str) -> None:
    path = put(tmp_path, "a.html", PAGE.format(head=declared, number=1).replace("ő", "ö"), encoding)
    assert Read(path, tmp_path).texts == [["Élö szöveg, 1."]]


def test_a_page_with_the_name_of_a_dump_is_a_failed_download_unless_it_is_wanted(tmp_path: Path) -> None:
    path = put(tmp_path, "a.xml", PAGE.format(head="", number=1))
    with pytest.raises(SourceError, match='format = "html"'):
        examine(path)
    assert Read(path, tmp_path, format="html").texts == [["Élő szöveg, 1."]]
    (tmp_path / "a.html.bz2").write_bytes(bz2.compress(path.read_bytes()))
    assert Read(tmp_path / "a.html.bz2", tmp_path).texts == [["Élő szöveg, 1."]]
    with pytest.raises(SourceError, match="HTML page, not a dump"):
        examine((tmp_path / "a.html.bz2").rename(tmp_path / "a.xml.bz2"))
