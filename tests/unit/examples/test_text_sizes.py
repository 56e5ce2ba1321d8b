"""The sizes of labelled texts are those that are read, and of a large file are known from a part of it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.examples.labelled import sizes
from bertwright.examples.labelled.config import Columns, LabelledTexts
from bertwright.examples.labelled.read import read_texts
from bertwright.examples.labelled.records import records
from bertwright.examples.labelled.sizes import text_sizes
from bertwright.examples.problems import Problems

TEXTS = LabelledTexts(("no", "yes"), (Columns("label", "text", "pair"),))
ROWS: list[dict[str, Any]] = [
    {"text": "öt szó", "pair": "b", "label": "yes"},
    {"text": "", "pair": "second", "label": "no"},
    {"text": "without a label", "pair": "b", "label": "-1"},
    {"text": "without a label either", "pair": "b", "label": None},
    {"text": None, "pair": "without its first text", "label": "no"},
]
PAIR = {"text": "a b c " * 20, "pair": "d e f", "label": "yes"}
Write = Callable[[Path, list[dict[str, Any]]], None]


def write_jsonl(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_json(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text(json.dumps(rows), encoding="utf-8")


def write_csv(file: Path, rows: list[dict[str, Any]]) -> None:
    # A missing value of the others is an empty cell here, and an empty text is one.
    lines = [",".join(row[name] or "" for name in ("text", "pair", "label")) for row in rows if row["text"] is not None]
    file.write_text("\n".join(["text,pair,label", *lines, ""]), encoding="utf-8")


def write_parquet(file: Path, rows: list[dict[str, Any]], categories: bool = False) -> None:
    pa = pytest.importorskip("pyarrow", reason="the extra 'formats' is not installed")
    import pyarrow.parquet

    table = pa.Table.from_pylist(rows)
    if categories:
        table = pa.table({name: table[name].dictionary_encode() for name in table.column_names})
    pyarrow.parquet.write_table(table, file)


def write_categories(file: Path, rows: list[dict[str, Any]]) -> None:
    write_parquet(file, rows, categories=True)


WRITERS = {"jsonl": write_jsonl, "json": write_json, "csv": write_csv, "parquet": write_parquet}


@each_row(("suffix", "write"), [*WRITERS.items(), ("parquet", write_categories)])
def test_of_a_small_file_they_are_exact(suffix: str, write: Write, tmp_path: Path) -> None:
    file = tmp_path / f"train.{suffix}"
    write(file, ROWS)
    found = text_sizes(file, TEXTS)
    assert (found.number, found.read.tolist(), found.longest) == (2, [9, 6], 9)
    assert len(list(read_texts(file, TEXTS, Problems()))) == 2, "the same texts as those of the stage"


def test_a_file_without_texts_has_none(tmp_path: Path) -> None:
    for suffix, write in WRITERS.items():
        write(tmp_path / f"train.{suffix}", ROWS[2:3])
        found = text_sizes(tmp_path / f"train.{suffix}", TEXTS)
        assert (found.number, found.read.tolist(), found.longest) == (0, [], 0)


@each_row("suffix", ["jsonl", "csv"])
def test_of_a_large_file_a_sample_is_parsed(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two records has a label, and the longest text is beyond the sample."""
    monkeypatch.setattr(sizes, "SAMPLE", 100)
    rows = [{"text": "a" * (i % 7), "pair": "b", "label": ("yes", "-1")[i % 2]} for i in range(2000)]
    rows[1500]["text"] = "a" * 900
    file = tmp_path / f"train.{suffix}"
    WRITERS[suffix](file, rows)
    found = text_sizes(file, TEXTS)
    assert len(found.read) == 50 and found.number == pytest.approx(1000, rel=0.02)
    assert found.longest == max(map(len, file.read_bytes().splitlines(keepends=True)))


def test_a_text_of_several_lines_is_as_long_as_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "SAMPLE", 10)
    (tmp_path / "train.csv").write_text("text,pair,label\n" + '"aaa\nbbb\nccc\nddd\neee",,yes\n' * 100)
    found = text_sizes(tmp_path / "train.csv", TEXTS)
    assert found.longest == 19 and found.number == pytest.approx(100, rel=0.02)


def test_a_large_parquet_has_a_number_but_no_longest_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "MOST", 500)
    monkeypatch.setattr(sizes, "_ROWS", 100)
    write_parquet(tmp_path / "train.parquet", [{"text": "abc", "pair": "def", "label": "yes"}] * 1000)
    found = text_sizes(tmp_path / "train.parquet", TEXTS)
    assert (found.number, found.read.tolist(), found.longest) == (1000, [6] * 100, None)


def test_columns_that_are_no_texts_are_an_error(tmp_path: Path) -> None:
    write_parquet(tmp_path / "train.parquet", [{"text": 1, "pair": "b", "label": "yes"}])
    with pytest.raises(DataError, match=r"train\.parquet has '1' where a text is expected"):
        text_sizes(tmp_path / "train.parquet", TEXTS)


def test_of_200_000_pairs_in_lines_a_sample_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, parsed = tmp_path / "train.jsonl", list[int]()
    file.write_text(f"{json.dumps(PAIR)}\n" * 200_000)

    def counted(*given: Any) -> Iterator[Any]:
        for record in records(*given):
            parsed.append(1)
            yield record

    monkeypatch.setattr(sizes, "records", counted)
    found = text_sizes(file, TEXTS)
    assert found.number == 200_000 and np.unique(found.read).tolist() == [125]
    assert len(parsed) <= sizes.SAMPLE + 1


class Converted:
    """A batch, or a column of one, that notes which columns are converted to Python's values."""

    def __init__(self, one: Any, notes: list[str], name: str = "") -> None:
        self._one, self._notes, self._name = one, notes, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._one, name)

    def __len__(self) -> int:
        return len(self._one)

    def __getitem__(self, name: str) -> Any:
        return Converted(self._one[name], self._notes, name)

    def to_pylist(self) -> list[Any]:
        self._notes.append(self._name)
        values: list[Any] = self._one.to_pylist()
        return values


def test_of_pairs_in_columns_the_labels_alone_are_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, converted, right = tmp_path / "train.parquet", list[str](), sizes._of_batch
    write_parquet(file, [PAIR] * 20_000)
    monkeypatch.setattr(sizes, "_of_batch", lambda file, batch, *more: right(file, Converted(batch, converted), *more))
    found = text_sizes(file, TEXTS)
    assert found.number == 20_000 and np.unique(found.read).tolist() == [125]
    assert set(converted) == {"label"}
