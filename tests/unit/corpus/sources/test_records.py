import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.file import File
from bertwright.corpus.sources.records import LINE, RecordSplitter, line_number, plain_lines
from bertwright.corpus.sources.text_formats import BLANK_LINES, DOCUMENT_END, NEVER

PATH = Path("x.txt")


def records(
    data: bytes, size: int, start: int = 0, *, cut: bool = False, boundary: re.Pattern[bytes] = BLANK_LINES
) -> list[tuple[int, str]]:
    splitter = RecordSplitter(PATH, start, boundary, cut=cut)
    return list(splitter.records(data[i : i + size] for i in range(0, len(data), size)))


def test_blank_lines_part_documents() -> None:
    data = "\ufeffElső sor.\nMásodik sor.\n\n \t\r\n\nÚj irat.\r\n".encode()
    assert records(data, 1000) == [(0, "Első sor.\nMásodik sor.\n\n \t\r\n\n"), (34, "Új irat.\r\n")]
    assert data[34:].decode().startswith("Új")


_LINE_END = re.compile("\r\n|[\r\n\f]")


@settings(max_examples=200)
@given(st.text("aé\n \r\f\u00a0\u3000、", max_size=60), st.integers(1, 70), st.sampled_from([BLANK_LINES, LINE, NEVER]))
@example("a\n\n\n\nb", 3, BLANK_LINES)
@example("a\n\n \n", 1, BLANK_LINES)
@example("a\n\u3000\n\u3000\u3000、", 5, BLANK_LINES)
def test_records_do_not_depend_on_blocks(text: str, size: int, boundary: re.Pattern[bytes]) -> None:
    data = text.encode()
    found = records(data, size, boundary=boundary)
    assert found == records(data, 1000, boundary=boundary)
    lines = [line for _, record in found for line in plain_lines(record)]
    assert [line.strip() for line in lines] == [line.strip() for line in _LINE_END.split(text) if line.strip()]
    assert all(data[offset:].decode().startswith(record) for offset, record in found)


@each_row("space", ["", " ", "\u3000", "\u00a0", "\f", "\t\u3000\r"])
def test_a_line_of_any_space_is_blank(space: str) -> None:
    found = records(f"一\n{space}\n\u3000二\n三\n".encode(), 4)
    assert [text.strip() for _, text in found] == ["一", "二\n三"]


@each_row("size", [7, 5000, 10_000])
def test_a_long_blank_line_parts_documents_too(size: int) -> None:
    data = b"a\n" + b" " * 6000 + b"\nb\n\nc"
    assert [text.strip() for _, text in records(data, size)] == ["a", "b", "c"]
    ends = b"<doc>\n</doc>" + b" " * 6000 + b"\n<doc>\n</doc>\n"
    assert len(records(ends, size, boundary=DOCUMENT_END)) == 2


def test_byte_order_mark_alone_is_not_a_record() -> None:
    assert records("\ufeff\n{}\n".encode(), 1000, boundary=LINE) == [(4, "{}\n")]


def test_a_cut_text_loses_its_last_document() -> None:
    assert records(b"one\n\ntwo and a ha\xc3", 4, cut=True) == [(0, "one\n\n")]


def test_lines_are_plain() -> None:
    assert plain_lines("a\x07b\u009fc\0\n\n\x08\n\ufeffe\u0301") == ["abc", "é"]


def test_half_of_a_character_is_replaced() -> None:
    assert plain_lines("a\ud83d b\U0001f600") == ["a\ufffd b\U0001f600"]


@each_row("character", ["é", "語", "\U0001f600"])
def test_a_text_that_ends_inside_a_character_was_cut(character: str) -> None:
    whole = character.encode()
    for size in range(1, len(whole)):
        splitter = RecordSplitter(PATH, 0, BLANK_LINES, cut=False)
        assert list(splitter.records([b"One.\n\nTwo", whole[:size]])) == [(0, "One.\n\n")]
        assert splitter.rest == b"Two" + whole[:size] and not splitter.replaced
    assert records(b"One.\n\n" + whole, 3)[1] == (6, character)


def test_the_line_of_an_offset(tmp_path: Path) -> None:
    text = b"one\n\nthree\nfour"
    (tmp_path / "a.xz").write_bytes(lzma.compress(text))
    file = File(tmp_path / "a.xz", "text", "xz")
    assert [line_number(file, text.index(word)) for word in (b"one", b"three", b"ree", b"four")] == [1, 3, 3, 4]


def test_other_encodings_are_an_error_with_a_place() -> None:
    with pytest.raises(SourceError, match="byte 106 of its text"):
        records(b"abc\n\nd\xe1 ", 3, start=100)
    rare = b"R\xe9sum\xe9. " + b"Plain English. " * 30
    with pytest.raises(SourceError, match="byte 1 of its text"):
        records(rare * 4, 100)


def test_a_few_invalid_bytes_are_replaced() -> None:
    assert records(b"A text.\n\nd\xe1.", 3) == [(0, "A text.\n\n"), (9, "d\ufffd.")]
    damaged = b"\xff" * 9 + b"Plain English. " * 1000
    ((offset, text),) = records(damaged, 1000)
    assert offset == 0 and text.count("\ufffd") == 9


def test_text_without_blank_lines_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.corpus.sources.records.MAX_DOCUMENT", 1000)
    with pytest.raises(SourceError, match="separate the documents by blank lines"):
        list(RecordSplitter(PATH, 0, BLANK_LINES, cut=False).records(b"line\n" * 30 for _ in range(10**9)))


@each_row("gap", [b"\n", b"\n ", b" "])
def test_a_long_gap_is_looked_through_once(gap: bytes) -> None:
    looked = 0

    class Counting:
        def finditer(self, buffer: bytearray, start: int) -> Iterator[re.Match[bytes]]:
            nonlocal looked
            looked += len(buffer) - start
            return BLANK_LINES.finditer(buffer, start)

    data = b"a\n" + 1000 * gap + b"\nb"
    splitter = RecordSplitter(Path("text"), 0, cast(re.Pattern[bytes], Counting()), cut=False)
    records = splitter.records(data[start : start + 10] for start in range(0, len(data), 10))
    assert [text.strip() for _, text in records] == ["a", "b"]
    assert looked < 2 * len(data)
