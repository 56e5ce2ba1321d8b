import random

import numpy as np
import pytest
from tests.rows import each_row

from bertwright.vocab import word_table
from bertwright.vocab.word_table import WordTable, lines_of, pretokenize, runs, text_of


def numbered(table: WordTable, listed: list[str]) -> tuple[list[int], list[str]]:
    text = text_of([" ".join(listed)])
    starts, ends = pretokenize(text)
    numbers, new = table.numbers(text, starts, ends)
    return numbers.tolist(), lines_of(text, starts[new], ends[new]).split()


def drawn(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    pieces = ["a", "b", "\0", "ő", "中", "12345678", "\U0001d518", "x" * 100]
    return ["".join(draw.choices(pieces, k=draw.randint(1, 4))) for _ in range(count)]


@each_row("hashing", ["as it is", "everything alike"])
def test_numbers_are_those_of_a_dictionary(hashing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if hashing == "everything alike":
        monkeypatch.setattr(word_table, "_GOLDEN", np.uint64(0))
    table, seen = WordTable(), dict[str, int]()
    for seed in range(4):
        listed, known = drawn(seed, 100), list(seen)
        numbers, new = numbered(table, listed)
        by_number = known + new
        assert [by_number[number] for number in numbers] == listed
        assert sorted(by_number) == sorted({**seen, **dict.fromkeys(listed)})
        seen = dict.fromkeys(by_number, 0)
    assert len(table) == len(seen)


def test_new_words_come_in_the_order_of_the_text() -> None:
    table = WordTable()
    assert numbered(table, ["b", "a", "b", "c"]) == ([0, 1, 0, 2], ["b", "a", "c"])
    assert numbered(table, ["d", "c", "e", "d"]) == ([3, 2, 4, 3], ["d", "e"])


def test_the_table_grows() -> None:
    table, listed = WordTable(), [f"word{i}" for i in range(20_000)]
    for start in range(0, len(listed), 1000):
        numbered(table, listed[start : start + 1000])
    assert numbered(table, listed) == (list(range(20_000)), [])


def test_zeros_at_the_end_tell_words_apart() -> None:
    assert numbered(WordTable(), ["a", "a\0", "a\0\0"])[0] == [0, 1, 2]


def test_no_words() -> None:
    table = WordTable()
    assert numbered(table, []) == ([], []) and len(table) == 0


def test_cut_by_hand() -> None:
    text = text_of(["a, b-c  é”", "", "x\ny"])
    starts, ends = pretokenize(text)
    assert lines_of(text, starts, ends).split("\n")[:-1] == ["a", ",", "b", "-", "c", "é", "”", "x", "y"]


def test_runs_by_hand() -> None:
    assert runs(np.array([5, 9, 1]), np.array([2, 0, 3])).tolist() == [5, 6, 1, 2, 3]


def test_marks_are_apart_also_where_nothing_parts_them() -> None:
    text = text_of(["„A”–b…«c»’d", "...", "\u2009x"])
    starts, ends = pretokenize(text)
    words = lines_of(text, starts, ends).split("\n")[:-1]
    assert words == ["„", "A", "”", "–b", "…", "«", "c", "»", "’", "d", ".", ".", ".", "\u2009x"]


def test_a_line_feed_within_a_sentence_does_not_end_it() -> None:
    """The number of line feeds is the number of sentences: the ids of each are told apart by them."""
    assert text_of(["a\nb", "c"]).count(b"\n") == 2 and text_of(["\n", "\n\n"]).count(b"\n") == 2
    assert text_of([]).strip() == b""
