"""Files of pairs of texts: their columns, what is skipped, and the examples that are made of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.examples.problems import Problems
from bertwright.tasks.embedding.config import EmbeddingConfig, PairFiles
from bertwright.tasks.embedding.files import Layout, Pair, read_layout
from bertwright.tasks.embedding.run import PairKind
from bertwright.vocab.split import build_tokenizer
from bertwright.vocab.tokenizer import Tokenizer

ENTRIES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "q", ":")


def write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    file = folder / "train.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def read(file: Path, **given: Any) -> tuple[list[Pair], dict[str, int]]:
    problems = Problems()
    return list(EmbeddingConfig(**given).files.read(file, problems)), dict(problems.counts)


@each_row(
    ("columns", "wanted"),
    [
        ("anchor positive", Layout("anchor", "positive")),
        ("positive anchor negatives group", Layout("anchor", "positive", ("negatives",), "group")),
        ("query answer negative_1 negative_2", Layout("query", "answer", ("negative_1", "negative_2"))),
        ("Question Context id", Layout("Question", "Context")),
        ("sentence1 sentence2 score", Layout("sentence1", "sentence2")),
    ],
)
def test_columns_are_found_by_their_usual_names(columns: str, wanted: Layout, tmp_path: Path) -> None:
    file = write(tmp_path, [dict.fromkeys(columns.split(), "a")])
    assert read_layout(file, Layout()) == wanted


def test_other_columns_are_named(tmp_path: Path) -> None:
    file = write(tmp_path, [{"left": "a", "right": "b", "wrong": ["c", "d"], "page": 7}])
    with pytest.raises(DataError, match=r"none of which is known to be that of the anchor. Name it: train.objective.a"):
        read(file)
    with pytest.raises(DataError, match=r"has the columns 'left', 'right', 'wrong', 'page', not 'top'"):
        read(file, anchor="top", positive="right")
    pairs, _ = read(file, anchor="left", positive="right", negatives="wrong", group="page")
    assert pairs == [Pair("a", "b", ("c", "d"), "7")]


def test_what_cannot_be_learned_from_is_skipped_and_counted(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"anchor": "a", "positive": "b", "negatives": ["b", "a", "c", " c ", ""]},
        {"anchor": " ", "positive": "b"},
        {"anchor": "a", "positive": "a"},
        {"anchor": "a", "positive": None},
        {"anchor": "a", "positive": "c", "negatives": [1]},
        {"anchor": "a", "positive": "d", "negatives": None},
    ]
    pairs, problems = read(write(tmp_path, rows))
    assert pairs == [Pair("a", "b", ("c",), ""), Pair("a", "d", (), "")]
    assert sorted(problems.values()) == [1, 1, 2]


def test_a_table_may_have_its_negatives_as_json(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text('anchor\tpositive\tnegatives\na\tb\t["c", "d"]\na\tc\t[d\n')
    assert [pair.negatives for pair in read(tmp_path / "train.tsv")[0]] == [("c", "d"), ("[d",)]


def test_equal_texts_and_groups_have_equal_numbers() -> None:
    files = PairFiles(Layout(), anchor_prompt="q: ")
    tokenizer = Tokenizer(build_tokenizer(list(ENTRIES), lower_case=True, strip_accents=False))
    pairs = [
        Pair("a", "b c", ("d",), "one"),
        Pair("b c", "d", (), "one"),
        Pair("a", "c", (), ""),
        Pair("c", "a", (), ""),
    ]
    columns = PairKind(files).columns(pairs, tokenizer)
    assert columns.counts.tolist() == [3, 2, 2, 2] and columns.fit
    assert columns.pieces.tolist() == [3, 2, 1, 4, 1, 3, 1, 3, 1], "anchors are read with their prompt"
    assert columns.texts.tolist() == [0, 1, 2, 1, 2, 0, 3, 3, 0], "but are equal to positives without it"
    assert columns.groups[0] == columns.groups[1] and len(np.unique(columns.groups)) == 3
    assert columns.lengths.tolist() == [6, 5, 4, 4]
    assert PairKind(files).lengths(columns, 4).tolist() == [2 + 2 + 2 + 2 + 1 + 2, 2 + 2 + 1 + 2, 4 + 3, 4 + 3]
