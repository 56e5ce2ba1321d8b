"""Held-out pairs are of the same task as training's, however few documents of a shard are held out."""

from pathlib import Path

import numpy as np
import pytest
from tests.rows import each_row
from tests.unit.examples import made

from bertwright.core.artifact import Artifact
from bertwright.core.stage_context import StageContext
from bertwright.corpus.heldout import is_heldout, text_hash
from bertwright.examples import run as examples_stage
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.example_set import Selection
from bertwright.examples.planned import heldout_batches, rows_of
from bertwright.examples.plans import BINS, Plans
from bertwright.examples.run_tasks import Inputs
from bertwright.examples.store import Store


def one_held_out_a_shard(shards: int, documents: int = 8) -> list[made.Text]:
    """Shards with one held-out document each (at a share of 0.1), among documents that are not."""
    every = made.text(60 * shards, seed=7)
    held = is_heldout(np.array([text_hash(text) for text in every], np.uint64), 0.1)
    lone = [text for text, out in zip(every, held, strict=True) if out and len(text) > 2]
    rest = [text for text, out in zip(every, held, strict=True) if not out]
    assert len(lone) >= shards
    return [[lone[i], *rest[i * documents : (i + 1) * documents]] for i in range(shards)]


def made_of(folder: Path, shards: list[made.Text], **changes: object) -> Artifact:
    source = made.corpus(folder / "corpus", shards)
    config = ExamplesConfig.model_validate({"passes": 5, "heldout": 0.1, "workers": 1, **changes})
    vocab = made.vocabulary(folder / "vocab", source)
    return examples_stage.run(config, (PlanSet(length=64),), Inputs(source, vocab), StageContext(folder / "examples"))


def test_lone_held_out_documents_of_shards_are_partners_of_each_other(tmp_path: Path) -> None:
    artifact = made_of(tmp_path, one_held_out_a_shard(24))
    assert artifact.counts["heldout"]["documents"] == 24
    train, held = (artifact.counts[split]["sequences"]["64"] for split in ("train", "heldout"))
    assert 0.4 < train["label_share"] < 0.75
    assert abs(held["label_share"] - train["label_share"]) < 0.12, "of about 130 pairs"
    labels = np.concatenate([b.sequence_labels for b in heldout_batches(artifact, 64, 10, 0.15, 8)])
    assert labels.mean().round(4) == held["label_share"]


@each_row("label", ["nvidia", "google"])
def test_a_document_that_is_held_out_alone_has_no_pairs_to_score(label: str, tmp_path: Path) -> None:
    """It was paired with itself: not a pair was called random, and half of those trained on are."""
    lone = one_held_out_a_shard(1, documents=30)
    artifact = made_of(tmp_path, lone, random_label=label)
    held = artifact.counts["heldout"]
    assert held["documents"] == 1 and held["sequences"]["64"]["label_share"] is None
    batches = list(heldout_batches(artifact, 64, 10, 0.15, 8))
    assert sum(len(batch.sequence_weights) for batch in batches) == held["rows"]["64"][0] > 2
    assert not any(batch.sequence_weights.any() for batch in batches)
    assert all(batch.weights.all() and len(batch.labels) for batch in batches), "masked tokens are scored as ever"


def test_random_segments_are_of_other_held_out_documents(tmp_path: Path) -> None:
    artifact = made_of(tmp_path, one_held_out_a_shard(6), short_seq_prob=0.0)
    store = Store.open(artifact, "heldout")
    documents = [store.tokens[a:b].tolist() for a, b in zip(store.starts[:-1], store.starts[1:], strict=True)]
    sep, seen = store.vocabulary.sep, set()
    for batch in heldout_batches(artifact, 64, 10, 0.15, 8):
        tokens = batch.token_ids.copy()
        tokens[batch.prediction_positions] = batch.labels
        for s, label in enumerate(batch.sequence_labels):
            row = tokens[batch.cu_seqlens[s] : batch.cu_seqlens[s + 1]].tolist()
            middle = row.index(sep)
            a, b = (_owner(part, documents) for part in (row[1:middle], row[middle + 1 : -1]))
            seen.add((label, a == b))
    assert seen == {(0, True), (1, False)}


def _owner(part: list[int], documents: list[list[int]]) -> int:
    (owner,) = [
        n for n, ids in enumerate(documents) if any(ids[i : i + len(part)] == part for i in range(len(ids)))
    ] or [-1]
    return owner


def test_groups_of_shards_are_planned_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.examples.heldout.TOGETHER", 150)
    artifact = made_of(tmp_path, one_held_out_a_shard(6), short_seq_prob=0.0)
    store, plans = Store.open(artifact, "heldout"), Plans.open(artifact, PlanSet(length=64), "heldout")
    groups = len(store.shard_tokens) - 1
    assert 1 < groups < 6 and plans.shard_rows.shape == (1, groups)
    every = Selection.of(np.arange(plans.sizes[0]))
    rows = rows_of(store, plans, every.passes, every.rows, every.keys)
    a, b = (np.searchsorted(store.shard_tokens, start, side="right") for start in (rows.a_start, rows.b_start))
    assert (a == b).all() and len(set(a)) == groups
    assert store.shard_tokens[-1] - store.shard_tokens[-2] >= 150, "what was left over joined the group before"


def test_lengths_are_counted_in_equal_ranges(examples: Artifact) -> None:
    for split, passes in (("train", 3), ("heldout", 1)):
        counts = examples.counts[split]
        for name, told in counts["sequences"].items():
            assert len(told["lengths"]) == BINS and sum(told["lengths"]) == sum(counts["rows"][name])
            assert len(counts["rows"][name]) == passes
    batches = list(heldout_batches(examples, 64, 10, 0.15, 8))
    lengths = np.concatenate([np.diff(batch.cu_seqlens) for batch in batches])
    held = examples.counts["heldout"]["sequences"]["64"]
    assert held["mean_length"] == np.round(lengths.mean(), 2)
    assert held["lengths"] == np.bincount((lengths - 1) * BINS // 64, minlength=BINS).tolist()


def test_what_word_frequencies_score_on_the_held_out_text(examples: Artifact) -> None:
    train, held = Store.open(examples), Store.open(examples, "heldout")
    counts = np.bincount(train.tokens, minlength=train.vocabulary.size) + 1.0
    expected = -np.log(counts / counts.sum())[held.tokens].mean()
    assert abs(examples.counts["heldout"]["unigram_loss"] - expected) < 1e-3
