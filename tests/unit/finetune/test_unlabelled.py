"""Files without labels, as `predict` reads them."""

from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.finetune.unlabelled import read_questions, read_sentences_of_words

PAIRS = "index\tsentence1\tsentence2\n0\tA b.\tC d.\n"


@each_row(
    ("name", "content", "wanted"),
    [
        ("a.txt", "One text.\nA\tpair\n", ["One text.", ("A", "pair")]),
        ("test.tsv", PAIRS, [("A b.", "C d.")]),
        ("test.jsonl", '{"id": "7", "blurb": "A b."}\n', ["A b."]),
        ("test.csv", 'text,other\n"A, b.",c\n', ["A, b."]),
    ],
)
def test_texts_and_pairs_are_found(name: str, content: str, wanted: list[object], tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert list(read_questions(tmp_path / name)) == wanted


@each_row(
    ("name", "content", "wanted"),
    [
        ("a.txt", "Ada met Bob .\n\n", [["Ada", "met", "Bob", "."], []]),
        ("a.conll", "Ada\nran\n\nBob\n", [["Ada", "ran"], ["Bob"]]),
        ("a.conll", "Ada B-PER\nran O\n", [["Ada", "ran"]]),
        ("a.jsonl", '{"tokens": ["Ada", "ran"]}\n', [["Ada", "ran"]]),
    ],
)
def test_words_are_found_with_and_without_tags(name: str, content: str, wanted: list[object], tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert list(read_sentences_of_words(tmp_path / name)) == wanted


def test_named_columns_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\ty\tz\nA b.\tC d.\tE\n", encoding="utf-8")
    assert list(read_questions(tmp_path / "a.tsv", "y", "x")) == [("C d.", "A b.")]
    with pytest.raises(DataError, match="has the columns 'x', 'y', 'z'"):
        list(read_questions(tmp_path / "a.tsv", "w"))


@each_row(
    ("name", "content", "message"),
    [
        ("a.pdf", "", "is in no format of texts"),
        ("a.jsonl", "", "has no records"),
        ("a.jsonl", '{"text": "A."}\n{"text": 7}\n', "line 2 has '7' where a text is expected"),
    ],
)
def test_what_cannot_be_read_is_named(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        list(read_questions(tmp_path / name))
    assert message in str(caught.value)
