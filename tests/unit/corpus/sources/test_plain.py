from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.plain import DocumentSplitter

PATH = Path("x.txt")


def documents(data: bytes, size: int, start: int = 0, *, cut: bool = False) -> list[tuple[int, list[str]]]:
    splitter = DocumentSplitter(PATH, start, cut=cut)
    return list(splitter.documents(data[i : i + size] for i in range(0, len(data), size)))


def test_blank_lines_part_documents() -> None:
    data = "\ufeffElső sor.\nMásodik sor.\n\n \t\r\n\nÚj irat.\r\n".encode()
    assert documents(data, 1000) == [(0, ["Első sor.", "Második sor."]), (34, ["Új irat.\r"])]
    assert data[34:].decode().startswith("Új")


@settings(max_examples=200, deadline=None)
@given(st.text("aé\n \r", max_size=60), st.integers(1, 70))
@example("a\n\n\n\nb", 3)
def test_documents_do_not_depend_on_blocks(text: str, size: int) -> None:
    data = text.encode()
    found = documents(data, size)
    assert found == documents(data, 1000)
    assert [line for _, lines in found for line in lines] == [line for line in text.split("\n") if line.strip()]
    for offset, lines in found:
        assert data[offset:].decode().startswith(lines[0].lstrip())


def test_a_cut_text_loses_its_last_document() -> None:
    assert documents(b"one\n\ntwo and a ha\xc3", 4, cut=True) == [(0, ["one"])]


def test_control_characters_are_left_out() -> None:
    assert documents(b"a\x07b\xc2\x9fc\n\n\x08\n", 10) == [(0, ["abc"])]


def test_other_encodings_are_an_error_with_a_place() -> None:
    with pytest.raises(SourceError, match="byte 106 of its text"):
        documents(b"abc\n\nd\xe1", 3, start=100)


def test_text_without_blank_lines_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.corpus.sources.plain.MAX_DOCUMENT", 1000)
    with pytest.raises(SourceError, match="separated by blank lines"):
        list(DocumentSplitter(PATH, 0, cut=False).documents(b"line\n" * 30 for _ in range(10**9)))
