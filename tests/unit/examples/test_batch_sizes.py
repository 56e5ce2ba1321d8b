"""Growing batches in closed form, beside a plain count."""

import math

from tests.rows import each_row

from bertwright.examples.sequences import BatchSizes

GROWTHS = [
    BatchSizes(8),
    BatchSizes(8, ((0, 8),)),
    BatchSizes(8, ((0, 2), (3, 8))),
    BatchSizes(9, ((0, 1), (1, 2), (5, 4), (6, 9))),
]


def counted(sizes: BatchSizes, step: int) -> int:
    """Step by step."""
    size = sizes.full
    for start, value in sizes.warmup:
        if start <= step:
            size = value
    return size


@each_row("sizes", GROWTHS)
def test_sizes_rows_and_steps_are_those_of_a_plain_count(sizes: BatchSizes) -> None:
    rows = 0
    for step in range(40):
        assert (sizes.at(step), sizes.before(step)) == (counted(sizes, step), rows)
        for row in range(rows, rows + counted(sizes, step)):
            assert sizes.step_of(row) == step
            assert sizes.steps_of(row + 1) == sizes.steps_of(row + 0.5) == step + 1
            assert sizes.steps_of((row + 1) * 21.0, 21.0) == step + 1
        rows += counted(sizes, step)


def test_without_growth_a_length_is_what_it_always_was() -> None:
    for amount, mean in ((1000, 37.3), (10**9, 88.123), (37.3 * 8 * 5, 37.3)):
        assert BatchSizes(8).steps_of(amount, mean) == math.ceil(amount / (mean * 8))
