"""Measuring beside a peer: the same examples on both sides, in turn, and what is said of a side that fails."""

import json

import pytest
from tests.pipeline.command import bertwright

from bertwright.bench import run as bench_run
from bertwright.bench.run import Measured, Setting, _measured, bench
from bertwright.bench.workload import WORKLOADS, Name, Workload, examples_of, loader_of
from bertwright.core.errors import DataError

SMALL = Workload("small", "tiny", 32, 4, "next-sentence", (1, 6), (5, 9))


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_is_what_it_says(name: Name) -> None:
    loader = loader_of(WORKLOADS[name])
    assert loader.total > 200, "more examples than are measured"
    fill = loader.mean_tokens / WORKLOADS[name].length
    assert (fill == 1) == (name in ("full-128", "base-128")) and (0.4 < fill < 0.5) == (name == "half-512")
    pairs = loader.counts(0).pairs
    assert (pairs == WORKLOADS[name].batch) == WORKLOADS[name].pairs


def test_both_sides_get_the_same_examples_before_masking() -> None:
    loader = loader_of(SMALL)
    (batch,) = loader.step(0)
    examples = list(examples_of(batch))
    assert sorted(len(each.token_ids) for each in examples) == sorted(
        (batch.cu_seqlens[1:] - batch.cu_seqlens[:-1]).tolist()
    )
    for each in examples:
        assert each.token_ids[0] == 2 and each.token_ids[-1] == 3 and 4 not in each.token_ids
        assert len(each.segment_ids) == len(each.token_ids) and each.label in (0, 1)


def test_ratios_are_of_blocks_that_stand_side_by_side() -> None:
    """A machine that slows down by a half after the first round changes no ratio."""
    own = [[(1.0, 2.0)] * 3, [(2.0, 4.0)] * 3]
    theirs = [[(3.0, 4.0)] * 3, [(6.0, 8.0)] * 3]
    assert _measured("w", "trainer", theirs, own) == Measured("w", "trainer", 4.5, 3.0, 6.0, 6.0, 3.0, 2.0)


def test_a_side_that_ends_is_named_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_run, "WARM_UP", "no number")
    with pytest.raises(DataError, match=r"bertwright ended while it was measured: ValueError: invalid literal"):
        bench(["full-128"], ["bertwright"], Setting(), lambda line: None)


@pytest.mark.slow
def test_the_verb_measures_both_in_turn() -> None:
    options = ["--workload", "pairs-128", "--rounds", "1", "--steps", "1", "--threads", "1", "--peer", "hf", "--json"]
    rows = json.loads(bertwright("bench", "train", *options).out)
    assert [row["side"] for row in rows] == ["bertwright", "trainer", "trainer-tuned"]
    assert all(row["seconds"] > 0 and row["processor_seconds"] > 0 for row in rows)
    assert rows[0]["times_as_fast"] == 1


def test_the_verb_measures_ours_alone_and_refuses_what_there_is_not() -> None:
    options = ["--workload", "full-128", "--rounds", "1", "--steps", "1", "--threads", "1"]
    shown = bertwright("bench", "train", *options).out
    assert "full-128" in shown and "1.00 ×" in shown
    refused = bertwright("bench", "train", "--workload", "fool-128")
    assert refused.code == 2 and "there are full-128, pairs-128, half-512, base-128" in refused.err
