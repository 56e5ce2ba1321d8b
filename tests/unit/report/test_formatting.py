"""Numbers and forms of the page at their edges; text of others is never markup."""

import pytest
from tests.rows import each_row
from tests.unit.report.conftest import written

from bertwright.core.numbers import duration, number, operations, percent, short_count
from bertwright.page.markup import b, bar, definitions, table

EVIL = "<script>\"'&"


@each_row(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (59.94, "59.9 s"),
        (59.97, "1 min 0 s"),
        (60, "1 min 0 s"),
        (119.7, "2 min 0 s"),
        (3599.6, "1 h 0 min"),
        (172_700, "47 h 58 min"),
        (172_800, "2 days 0 h"),
        (360_000, "4 days 4 h"),
    ],
)
def test_a_duration_has_no_sixtieth_second_or_minute(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@each_row(
    ("value", "text"),
    [
        (0, "0"),
        (9_999, "9,999"),
        (9_999.6, "10 k"),
        (10_000, "10 k"),
        (99_950, "100 k"),
        (999_499, "999 k"),
        (999_999, "1 M"),
        (1e6, "1 M"),
        (12_345_678, "12.3 M"),
        (999_999_999, "1 G"),
        (2.5e12, "2.5 T"),
        (12_345e12, "12,345 T"),
    ],
)
def test_large_counts_have_a_unit(value: float, text: str) -> None:
    assert short_count(value) == text


@each_row(
    ("value", "text"), [(1.0, "1"), (-3, "-3"), (1e-5, "1e-05"), (1000.4, "1,000"), (10**15, "1,000,000,000,000,000")]
)
def test_whole_numbers_have_no_fraction(value: float, text: str) -> None:
    assert number(value) == text


def test_a_share_that_is_none_is_no_number() -> None:
    assert percent(None) == "NaN"
    assert [percent(share) for share in (0, 1, 0.9999, 0.00051)] == [
        "0\u00a0%",
        "100\u00a0%",
        "100\u00a0%",
        "0.1\u00a0%",
    ]


def test_bars_stay_in_their_cell() -> None:
    assert [
        written(bar(share)).count(f"--share:{width}%") for share, width in ((-1, "0.0"), (0.256, "25.6"), (7, "100.0"))
    ] == [1] * 3


def test_names_values_heads_and_cells_are_text() -> None:
    shown = written((definitions([(EVIL, EVIL)]), table((EVIL,), [(EVIL,), (b(EVIL),)])))
    assert "<script>" not in shown and shown.count("<b>&lt;script&gt;") == 1
    assert shown.count("&lt;script&gt;") == 5 and shown.count('data-head="&lt;script&gt;&quot;\'&amp;"') == 0
    assert shown.count('data-head="<script&gt;&quot;\'&amp;"') == 2, "in an attribute"
    assert "<tbody></tbody>" in written(table(("a", "b"), []))


def test_a_row_of_another_length_is_a_fault_of_ours() -> None:
    with pytest.raises(ValueError, match="zip"):
        table(("a", "b"), [("only one",)])


@each_row(
    ("tera", "shown"),
    [(45_600.0, "45.6 PFLOP"), (1.0, "1 TFLOP"), (0.25, "250 GFLOP"), (2.5e-5, "25 MFLOP"), (3e11, "300 ZFLOP")],
)
def test_operations_have_the_unit_that_makes_them_small(tera: float, shown: str) -> None:
    assert operations(tera) == shown
