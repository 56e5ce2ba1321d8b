"""Several labels of a text in a file: lists, text with separators, and a column for each label."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.examples.labelled.config import Columns, LabelledTexts
from bertwright.examples.labelled.read import read_texts
from bertwright.examples.labelled.several import divide, find_separator
from bertwright.examples.labelled.sizes import text_sizes
from bertwright.examples.problems import Problems
from bertwright.tasks.classification.config import ClassificationConfig

NAMES = ("good", "new", "R&B, soul")
KNOWN = {*NAMES, "0", "1", "2"}
TEXTS = LabelledTexts(NAMES, (Columns("labels", "text"),), several=True)
WIDE = LabelledTexts(("toxic", "insult"), (Columns("", "text", "", ("toxic", "insult")),), several=True)


@each_row(
    ("value", "parts"),
    {
        "a list": (["good", "new"], ["good", "new"]),
        "numbers": ([2, 0], ["2", "0"]),
        "one label": ("new", ["new"]),
        "nothing": ("", []),
        "an empty list": ([], []),
        "spaces": ("  ", []),
        "commas": ("good, new", ["good", "new"]),
        "semicolons": ("good;new;", ["good", "new"]),
        "bars": ("good|R&B, soul", ["good", "R&B, soul"]),
        "a label with a comma": ("R&B, soul", ["R&B, soul"]),
        "a list as text": ("['good', 'R&B, soul']", ["good", "R&B, soul"]),
        "a list of JSON": ('["good"]', ["good"]),
        "an array of numpy": ("[0 2]", ["0", "2"]),
        "an empty list as text": ("[]", []),
        "an unknown label": ("good;old", ["good", "old"]),
    }.values(),
)
def test_a_value_is_divided(value: object, parts: list[str]) -> None:
    assert divide(value, KNOWN.__contains__) == parts


@each_row(
    ("values", "separator"),
    {
        "lists": ([["a"], []], "list"),
        "lists as text": (["['a']", "[]", "['a', 'b']"], "list"),
        "commas": (["a", "a,b", "b", ""], ","),
        "bars before commas": (["x, y|z", "z", "x, y"], "|"),
        "single classes": (["a", "b", "a"], ""),
        "names that contain a comma": (["Food, drink", "Sport", "Home, garden"], ""),
        "numbers with a decimal comma": ([f"{n},{k}" for n in range(5) for k in range(10)], ""),
        "nothing": (["", ""], ""),
    }.values(),
)
def test_the_separator_is_found(values: list[object], separator: str) -> None:
    assert find_separator(values) == separator


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_text_without_labels_is_an_example(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "labels": ["new", 0]},
        {"text": "b", "labels": []},
        {"text": "c", "labels": ""},
        {"text": "d", "labels": None},
        {"text": "e", "labels": "new|good|new"},
    ]
    file, problems = write(tmp_path / "train.jsonl", rows), Problems()
    assert [tuple(text) for text in read_texts(file, TEXTS, problems)] == [
        ("a", "", (0, 1)), ("b", "", ()), ("c", "", ()), ("e", "", (0, 1)),
    ]  # fmt: skip
    assert problems.counts == {"texts without a label": 1}
    assert text_sizes(file, TEXTS).number == 4


def test_each_label_has_a_column(tmp_path: Path) -> None:
    file, problems = tmp_path / "train.csv", Problems()
    file.write_text("text,toxic,insult\na,0,1\nb,0,0\nc,-1,-1\nd,True,1.0\n", encoding="utf-8")
    assert [text.label for text in read_texts(file, WIDE, problems)] == [(1,), (), (0, 1)]
    assert problems.counts == {"texts without a label": 1}
    file.write_text("text,toxic,insult\na,0,3\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 2, column 'insult', has '3' where 1 \(the text has this label\) or 0"):
        list(read_texts(file, WIDE, problems))
    file.write_text("text,toxic\na,0\n", encoding="utf-8")
    with pytest.raises(DataError, match="needed are 'text', 'toxic', 'insult'"):
        list(read_texts(file, WIDE, problems))


def test_columns_of_a_parquet_have_the_same_sizes(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"text": ["ab", "c", "d"], "toxic": [1, None, 0], "insult": [0, 1, 0]})
    parquet.write_table(table, tmp_path / "train.parquet")
    assert text_sizes(tmp_path / "train.parquet", WIDE).read.tolist() == [2, 1]
    lists = pyarrow.table({"text": ["ab", "c", "d"], "labels": [["good"], [], None]})
    parquet.write_table(lists, tmp_path / "lists.parquet")
    assert np.array_equal(text_sizes(tmp_path / "lists.parquet", TEXTS).read, [2, 1])
    assert [text.label for text in read_texts(tmp_path / "lists.parquet", TEXTS, Problems())] == [(0,), ()]


def test_an_unknown_label_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "train.jsonl", [{"text": "a", "labels": "good,bad"}])
    with pytest.raises(DataError, match="line 1 has the label 'bad', which is not one of the classes"):
        list(read_texts(file, TEXTS, Problems()))


@each_row(
    ("settings", "message"),
    {
        "one label": ({"labels": ["toxic"], "several": True}, "several needs at least two labels"),
        "a task of GLUE": ({"task": "rte", "several": True}, "leave out several"),
        "no column": ({"labels": ["a", "b"], "label": ""}, "label is empty, which is for several=true"),
    }.values(),
)
def test_settings_that_contradict(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassificationConfig.model_validate(settings)
