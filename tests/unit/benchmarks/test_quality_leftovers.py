"""The counting rules of the quality benchmark: what is a leftover and what is an article's own text."""

from collections import Counter

from benchmarks.cleaners.leftovers import COLUMNS, WORD, find
from tests.rows import each_row

NAMES = ["Файл", "File", "Категорія", "Category"]


def counts(text: str, headings: tuple[str, ...] = (), literal: str = "") -> dict[str, int]:
    return dict(Counter(column for column, _ in find(text, NAMES, headings, literal)))


@each_row(
    ("text", "column"),
    [
        ("text Категорія:Міста more", "File:/Category:"),
        ("file:Map.svg", "File:/Category:"),
        ("A map 250px wide", "px/thumb"),
        ("міні|праворуч|Мапа", "px/thumb"),
        ("| cell", "table"),
        ("{| border", "table"),
        ('style="width: 100%"', "table"),
        ("an ''italic word", "''"),
        ("\n== History ==\n", "== =="),
        ("* an item", "list marks"),
        ("where formula_12 holds", "formula_N"),
        ("Budapest ( ; ) is", "empty brackets"),
        ("Budapest , the", "space, stop"),
        ("the end .", "space, stop"),
        ("Երևան ։", "space, stop"),
        ("AT&amp;T", "entities"),
        ("{{convert", "{{ }}"),
        ("Foo]] bar", "[[ ]]"),
        ('<span class="x">', "tags"),
    ],
)
def test_leftovers_are_counted_in_their_column(text: str, column: str) -> None:
    assert column in counts(text)
    assert column in COLUMNS


@each_row(
    "text",
    [
        "A category: the file: plain words.",
        "His thumb was left right in the centre.",
        "It measures 45°30'' and 6'2''.",
        "Call main() or f(x), then |x| and a || b.",
        "The .NET runtime, a .45 pistol, and so on ...",
        "He was #1 and 2 < 3 > 1.",
        "An attribute such as style=“x” is written in a tag.",
    ],
)
def test_prose_is_no_leftover(text: str) -> None:
    assert counts(text) == {}


def test_several_columns_count_each_hit() -> None:
    assert counts("thumb|200px|A flag [[caption]] ,") == {"px/thumb": 2, "[[ ]]": 2, "space, stop": 1}


def test_a_line_that_is_a_heading_counts_with_and_without_its_stop() -> None:
    assert counts("History.\nIts History.\nHistory", headings=("History",)) == {"heading lines": 2}


def test_what_the_page_shows_literally_may_occur_as_often_as_there() -> None:
    assert counts("write ''x''", literal="''x''") == {}
    assert counts("write ''x'' and ''y", literal="''x''") == {"''": 1}


def test_words_hold_their_vowel_signs() -> None:
    assert WORD.findall("বাংলা ভাষা, it's 3,5") == ["বাংলা", "ভাষা", "it", "s", "3", "5"]
