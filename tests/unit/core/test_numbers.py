"""Numbers for people: three digits, and a unit that changes where the digits would."""

from tests.rows import each_row

from bertwright.core.numbers import amount, pluralize, short_count, size_of


@each_row(
    ("size", "said"),
    [
        (0, "0 bytes"),
        (999.4, "999 bytes"),
        (160_000, "160 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (99_400_000, "99.4 MB"),
        (99_500_000, "99.5 MB"),
        (412_345_678, "412 MB"),
        (1_540_000_000, "1.54 GB"),
        (80e9, "80 GB"),
        (1_234_500_000_000_000, "1,234 TB"),
    ],
)
def test_bytes(size: float, said: str) -> None:
    assert size_of(size) == said


@each_row(
    ("value", "said"),
    [(0, "0"), (9_999, "9,999"), (12_345, "12.3 k"), (999_500, "1 M"), (1.25e6, "1.25 M"), (3.14e9, "3.14 G")],
)
def test_counts(value: float, said: str) -> None:
    assert short_count(value) == said


@each_row(
    ("value", "said"),
    [(0, "0"), (0.0004, "under 0.001"), (0.0123, "0.0123"), (3.4567, "3.46"), (99.94, "99.9"), (1234.5, "1,234")],
)
def test_amounts(value: float, said: str) -> None:
    assert amount(value) == said


def test_a_number_with_its_noun() -> None:
    assert [pluralize(number, "file") for number in (0, 1, 1801)] == ["0 files", "1 file", "1,801 files"]
