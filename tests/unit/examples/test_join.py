"""The parts of shards become one store and one plan a pass, whatever the shards hold; rows are counted as they are."""

from pathlib import Path
from statistics import pstdev
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.rows import each_row

from bertwright.core.files import read_json
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.documents import documents_of
from bertwright.examples.frequencies import log_probabilities, token_counts, unigram_loss
from bertwright.examples.join import join_split, join_store
from bertwright.examples.plans import BINS, ROW, UNLABELLED, PlanStatistics, rows
from bertwright.examples.shard import write_split

CONFIG = ExamplesConfig(passes=2, plan="doc-sentences")
SET = PlanSet(length=16)
SHARDS = [[[[1, 2], [3]], [[4]]], [], [[[5, 6]]]]
"""Shards of documents of sentences of ids; one of them is empty."""


def written(parts: Path, split: str = "train") -> dict[int, dict[str, Any]]:
    """The parts of `SHARDS`; their counts by number."""
    facts = {}
    for number, shard in enumerate(SHARDS):
        sentences = [sentence for document in shard for sentence in document]
        ids = np.array([token for sentence in sentences for token in sentence], "<u2")
        lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        hashes = [10 * number + i for i in range(len(shard))]
        documents = documents_of(ids, [len(document) for document in shard], lengths, hashes)
        facts[number], _ = write_split(parts, number, split, documents, [SET], CONFIG)  # type: ignore[arg-type]
    return facts


def array(path: Path, dtype: Any) -> list[int]:
    return np.fromfile(path, dtype).tolist()


def test_offsets_count_through_all_parts(tmp_path: Path) -> None:
    facts = written(tmp_path / "parts")
    counts = join_split(tmp_path, tmp_path / "parts", "train", facts, {SET.name: SET.length})
    store = tmp_path / "store"
    assert array(store / "train.tokens", "<u2") == [1, 2, 3, 4, 5, 6]
    assert array(store / "train.sentences", "<u2") == [2, 1, 1, 2]
    assert array(store / "train.documents", "<u8") == [0, 2, 3, 4]
    assert array(store / "train.starts", "<u8") == [0, 3, 4, 6]
    assert array(store / "train.hashes", "<u8") == [0, 1, 20]
    assert [shard["tokens"] for shard in read_json(store / "train.json")["shards"]] == [4, 0, 2]
    assert (counts["documents"], counts["sentences"], counts["tokens"]) == (3, 4, 6)
    assert counts["rows"] == {"16": [3, 3]}
    assert read_json(tmp_path / "plans" / "train" / "16.json")["rows"] == [[2, 0, 1]] * 2


def test_rows_that_are_not_kept_are_neither_written_nor_counted(tmp_path: Path) -> None:
    facts = written(tmp_path / "parts")

    def kept(number: int, plan: NDArray[np.void]) -> NDArray[np.void]:
        return plan[1:] if number == 0 else plan

    counts = join_split(tmp_path, tmp_path / "parts", "train", facts, {SET.name: SET.length}, kept)
    assert counts["rows"] == {"16": [2, 2]} and sum(counts["sequences"]["16"]["lengths"]) == 4
    left = np.fromfile(tmp_path / "plans" / "train" / "16" / "00.rows", ROW)
    assert left["a_start"].tolist() == [3, 0], "starts stay those of their own shard"
    assert read_json(tmp_path / "plans" / "train" / "16.json")["rows"] == [[1, 0, 1]] * 2


def test_a_part_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    facts = written(tmp_path / "parts")
    (tmp_path / "parts" / "train" / "00002.hashes").unlink()
    with pytest.raises(FileNotFoundError) as failed:
        join_store(tmp_path, tmp_path / "parts" / "train", "train", facts)
    assert str(failed.value.filename).endswith("00002.hashes")


def test_counts_are_clamped_to_16_bits_and_starts_are_not() -> None:
    ends = np.array([70_000, 3_000_000_000])
    plan = rows(np.array([0, 2_999_999_998]), ends, ends, ends + np.array([65_536, 1]), [1, 0], 2)
    assert plan["a_count"].tolist() == [65_535, 2] and plan["b_count"].tolist() == [65_535, 1]
    assert plan["b_start"].tolist() == [70_000, 3_000_000_000] and plan["breaks"].tolist() == [2, 2]


@each_row("length", [8, 19, 128, 512])
def test_sequences_are_counted_as_they_will_be_drawn(length: int) -> None:
    """Truncated, special tokens included: [CLS], [SEP] after A, after B and where a document begins."""
    a, b, breaks = np.array([1, 5, 600, 3, 40_000]), np.array([0, 4, 600, 2, 40_000]), np.array([0, 0, 0, 3, 0])
    label = np.array([0, 1, 0, UNLABELLED, 1])
    tally, start = PlanStatistics(length), np.zeros(5, np.int64)
    for which in (slice(2), slice(2, 5), slice(0)):  # added in parts, one of them empty
        tally.add(rows(start, a, start, b, label, breaks)[which])
    lengths = [min(length, x + y + 2 + (y > 0) + z) for x, y, z in zip(a, b, breaks, strict=True)]
    counts = tally.counts()
    assert counts["mean_length"] == round(sum(lengths) / 5, 2) and sum(counts["lengths"]) == 5
    assert counts["longest"] == max(lengths) and counts["deviation"] == round(pstdev(map(float, lengths)), 2)
    for number in range(BINS):
        members = [n for n in lengths if number * length < BINS * (n - 1) + BINS and (n - 1) * BINS // length == number]
        assert counts["lengths"][number] == len(members)
    assert counts["label_share"] == round(2 / 3, 4), "of four pairs one has no label, two are random"


def test_no_sequence_has_no_mean_and_no_share() -> None:
    nothing = {"lengths": [0] * BINS, "mean_length": 0.0, "deviation": 0.0, "longest": 0, "label_share": None}
    assert PlanStatistics(128).counts() == nothing


def test_frequencies_are_counted_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.examples.frequencies.AT_ONCE", 3)
    assert token_counts(np.array([0, 2, 2, 2, 1, 0, 4], np.uint16), 6).tolist() == [2, 1, 3, 0, 1, 0]
    assert token_counts(np.zeros(0, np.uint32), 2).tolist() == [0, 0]
    logs = log_probabilities(np.array([0, 3, 0]))
    assert np.allclose(np.exp(logs), [1 / 6, 4 / 6, 1 / 6]), "one is added to each count"


def test_the_unigram_loss_is_a_cross_entropy(tmp_path: Path) -> None:
    facts = written(tmp_path / "parts")
    join_store(tmp_path, tmp_path / "parts" / "train", "train", facts)
    join_store(tmp_path, tmp_path / "parts" / "train", "heldout", {2: facts[2]})
    p = np.array([1, 2, 2, 2, 2, 2, 2, 1]) / 14  # six tokens once each, and one more of each of eight entries
    assert unigram_loss(tmp_path, 8) == round(-(np.log(p[5]) + np.log(p[6])) / 2, 4)
    join_store(tmp_path, tmp_path / "parts" / "train", "heldout", {1: facts[1]})
    assert unigram_loss(tmp_path, 8) == 0.0
