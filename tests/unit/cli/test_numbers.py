"""Numbers for people: units change where the digits would, and columns keep their sides."""

from typing import Any

from tests.rows import each_row

from bertwright.cli.plan import _quote
from bertwright.cli.text import columns, losses, number, progress_words, row_line
from bertwright.core.numbers import step_duration, time_left


@each_row(
    ("value", "said"),
    [
        (0.000_12, "0.12 ms"),
        (0.035, "35 ms"),
        (0.9994, "999 ms"),
        (0.9995, "1 s"),
        (2.44, "2.44 s"),
        (99.95, "100 s"),
        (999.4, "999 s"),
        (999.6, "1,000 s"),
        (1234.4, "1,234 s"),
    ],
)
def test_seconds(value: float, said: str) -> None:
    assert step_duration(value) == said


@each_row(
    ("left", "said"),
    [
        (None, "NaN"),
        (0, "0:00:00"),
        (59.6, "0:01:00"),
        (750, "0:12:30"),
        (3600, "1:00:00"),
        (86_399, "23:59:59"),
        (86_400, "1d 00:00"),
        (3 * 86_400 + 4 * 3600 + 5 * 60 + 59, "3d 04:05"),
        (1000 * 86_400, "1,000d 00:00"),
    ],
)
def test_time_left(left: float | None, said: str) -> None:
    assert time_left(left) == said


def test_keys_with_shell_characters_are_quoted() -> None:
    assert _quote("train.engine=zero") == "train.engine=zero"
    for key in ('train.precision={kind="bf16"}', "a=[1]", "a=b c"):
        assert _quote(key) == f"'{key}'"


def test_tables_have_words_on_the_left_and_numbers_on_the_right() -> None:
    rows = [("a", "1", "10"), ("long", "200", "3")]
    assert list(columns(("name", "n", "of"), rows)) == ["name    n  of", "a       1  10", "long  200   3"]
    assert list(columns(("name", "n", "of"), rows, words=2)) == ["name  n    of", "a     1    10", "long  200   3"]
    assert list(columns(("name", "n"), [("x", "")])) == ["name  n", "x"], "no blanks at the end"


ROW: dict[str, Any] = {
    "phase": 1,
    "step": 12_000,
    "mlm_loss": 2.34567,
    "mlm_accuracy": 0.456,
    "learning_rate": 0.000123,
    "tokens_per_second": 12_345.6,
    "data_wait_share": 0.034,
    "remaining_seconds": 750,
}


def test_a_row_has_its_numbers_under_their_titles() -> None:
    """10 columns; a score that the run lacks is a dash, and a number that is none NaN."""
    cells = row_line({**ROW, "nsp_loss": 0.5, "heldout_mlm_loss": 2.5, "heldout_mlm_accuracy": 0.5}).split()
    assert cells == ["1", "12,000", "2.346", "2.500", "50.0%", "–", "1.2e-04", "12,346", "3%", "0:12:30"]
    cells = row_line({**ROW, "mlm_loss": None, "heldout_nsp_accuracy": 0.75}).split()
    assert cells[2:6] == ["NaN", "–", "–", "75.0%"]
    assert row_line({**ROW, "heldout_nsp_accuracy": 0.75, "heldout_sop_accuracy": 0.8}).split()[5] == "80.0%"


def test_the_first_loss_is_the_one_that_is_shown() -> None:
    classes = {"step": 1, "classification_loss": 0.25, "mlm_loss": 9.0}
    assert losses(classes) == [0.25]
    assert losses({**classes, "heldout_mlm_loss": 3.0}) == [0.25]
    assert losses({**classes, "heldout_classification_loss": None}) == [0.25, None]


def test_the_words_of_a_bar_have_what_is_known() -> None:
    words = progress_words(ROW).split(", ")
    assert len(words) == 4 and "0:12:30" in words[0] and " to " not in words[0]
    assert words[1].endswith("2.346") and words[2].startswith("45.6%") and words[3].startswith("12,346 ")
    more = {**ROW, "remaining_low_seconds": 60, "remaining_high_seconds": 120, "tflops_per_second": 1.234}
    said = progress_words(more)
    assert "(0:01:00 to 0:02:00)" in said and "1.23 " in said
    assert progress_words({**ROW, "tflops_per_second": 0.004}) == progress_words(ROW), "it would be shown as 0"
    assert progress_words({**ROW, "tflops_per_second": 0.005}) != progress_words(ROW)
    without = {name: value for name, value in ROW.items() if name != "mlm_accuracy"}
    assert "%" not in progress_words(without) and "%" not in progress_words({**ROW, "mlm_accuracy": None})
    assert "NaN" in progress_words({**ROW, "tokens_per_second": None})
    assert number(None, "{:.1f}") == "NaN" and number(0.0, "{:.1f}") == "0.0"
