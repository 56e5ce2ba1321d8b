"""Rates and remaining time."""

from bertwright.cli.terminal import Throughput


def test_rates_are_those_of_the_last_half_minute() -> None:
    throughput = Throughput()
    said = [throughput.describe(t, 2 * t if t < 100 else 200 + 8 * (t - 100), 1000, "MB", {}) for t in range(141)]
    assert said[0] == ""
    assert said[50] == "0:07:30 left, 2.0 MB/s"
    assert said[140] == "0:01:00 left, 8.0 MB/s"


def test_what_was_finished_before_does_not_count_as_fast() -> None:
    throughput = Throughput()
    throughput.describe(0, 900, 1000, "MB", {"documents": 0})
    assert throughput.describe(10, 910, 1000, "MB", {"documents": 1500}) == "0:01:30 left, 1.0 MB/s, 150 documents/s"


def test_a_second_task_list_restarts_the_rate() -> None:
    throughput = Throughput()
    throughput.describe(0, 0, 10, "shards", {})
    throughput.describe(5, 10, 10, "shards", {})
    assert throughput.describe(6, 1, 10, "shards", {}) == ""
    assert throughput.describe(8, 3, 10, "shards", {}) == "0:00:07 left, 1.0 shards/s"


def test_an_unknown_total_has_no_end_and_standstill_neither() -> None:
    throughput = Throughput()
    throughput.describe(0, 0, 0, "MB", {})
    assert throughput.describe(4, 10, 0, "MB", {}) == "2.5 MB/s"
    throughput = Throughput()
    throughput.describe(0, 5, 10, "MB", {})
    assert throughput.describe(4, 5, 10, "MB", {}) == "0.0 MB/s"
