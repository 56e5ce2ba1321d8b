"""The sizes of a Wikipedia from the table: names of databases, counts that failed, and values that are missing."""

import pytest
from tests.rows import each_row

from bertwright.init.dump_sizes import WikiSize, wiki_size


@each_row(
    ("language", "known"),
    [
        ("nb", wiki_size("no")),
        ("be-tarask", WikiSize(78_392_906, 249_911_330 - 150 * 83_778, 83_778)),  # be_x_old
        ("nan", wiki_size("zh-min-nan")),
        ("alt", WikiSize(None, 6_370_197 - 150 * 1_076, 1_076)),  # younger than the dumps
        ("mus", WikiSize(4_515)),  # 922 bytes in two articles: closed
        ("ak", WikiSize(376_948)),  # 189 bytes: the count failed
    ],
)
def test_a_wiki_is_found_by_its_database_name(language: str, known: WikiSize) -> None:
    assert wiki_size(language) == known


@each_row(
    ("row", "known"),
    [
        (("10", "1000", "1"), WikiSize(10, 850, 1)),
        (("10", "999", "1"), WikiSize(10)),
        (("10", "2000", "20"), WikiSize(10, 0, 20)),  # titles and addresses longer than they are on average
        (("10", "", "20"), WikiSize(10)),
        (("10", "2000", ""), WikiSize(10)),
        (("", "", ""), WikiSize()),
    ],
)
def test_text_sizes_are_not_negative(row: tuple[str, ...], known: WikiSize, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.init.dump_sizes._table", lambda: {"hu": list(row)})
    assert wiki_size("hu") == known and wiki_size("uk") == WikiSize()
