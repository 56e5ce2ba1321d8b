"""Dotted keys find values, tell whether they overlap, and name every value that contains nothing else."""

from typing import Any

from tests.rows import each_row

from bertwright.core.dotted import leaves, overlap, texts, value_at

VALUES = {"train": {"phases": [{"steps": 3}, {"steps": 5}]}, "name": None}


@each_row(
    ("key", "value"),
    [
        ("train.phases.1.steps", 5),
        ("train.phases.1", {"steps": 5}),
        ("train.phases.2.steps", None),
        ("train.phases.last.steps", None),
        ("train.phases.1.steps.more", None),
        ("name", None),
    ],
)
def test_a_value_is_found_by_its_key(key: str, value: Any) -> None:
    assert value_at(VALUES, key) == value


@each_row(
    ("one", "other", "expected"),
    [
        ("corpus.source", "corpus.source", True),
        ("corpus.source.0.path", "corpus.source", True),
        ("corpus", "corpus.source", True),
        ("corpus.sources", "corpus.source", False),
        ("vocab.file", "corpus.source", False),
    ],
)
def test_keys_overlap_if_one_contains_the_other(one: str, other: str, expected: bool) -> None:
    assert overlap(one, other) is overlap(other, one) is expected


def test_every_text_has_its_dotted_key() -> None:
    values = {"a": "1", "b": {"c": ["2", {"d": "3"}], "n": 4, "t": True}, "e": []}
    assert list(texts(values)) == [("a", "1"), ("b.c.0", "2"), ("b.c.1.d", "3")]


def test_every_leaf_has_its_dotted_key() -> None:
    values = {"a": 1, "b": {"c": [2, {"d": 3}]}, "e": {}, "f": []}
    assert list(leaves(values)) == [("a", 1), ("b.c.0", 2), ("b.c.1.d", 3)]
    assert list(leaves(values, whole_lists=True)) == [("a", 1), ("b.c", [2, {"d": 3}]), ("f", [])]
    assert list(leaves("alone", "key")) == [("key", "alone")]
