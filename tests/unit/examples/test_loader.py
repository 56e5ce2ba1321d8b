import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.unit.examples import made

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.stage_context import StageContext
from bertwright.corpus.heldout import text_hash
from bertwright.examples import run as examples_stage
from bertwright.examples.batch import MicroBatch, batch_hash
from bertwright.examples.config import ExamplesConfig, MaskingConfig, MicroBatching, PlanSet
from bertwright.examples.documents import in_range
from bertwright.examples.loader import Epochs, LoaderSettings
from bertwright.examples.planned import heldout_batches, open_loader
from bertwright.examples.plans import Plans
from bertwright.examples.run_tasks import Inputs
from bertwright.examples.store import Store

SETTINGS = LoaderSettings(
    length=64,
    masking=MaskingConfig(max_predictions=10),
    global_batch=50,
    micro_batching=MicroBatching(8),
    seed=1,
    phase="one",
)


def changed(**changes: object) -> LoaderSettings:
    return LoaderSettings(**{**vars(SETTINGS), **changes})


def test_a_step_holds_its_global_batch(examples: Artifact) -> None:
    loader = open_loader(examples, made.SETS[0], SETTINGS)
    for world in (1, 2, 3, 7):
        parts = [loader.step(4, rank, world) for rank in range(world)]
        assert sum(batch.counts.sequences for rank in parts for batch in rank) == 50
        for rank, batches in enumerate(parts):
            predictions = sum(batch.counts.predictions for batch in batches)
            pairs = sum(int(batch.sequence_weights.sum()) for batch in batches)
            tokens = sum(batch.counts.tokens for batch in batches)
            assert loader.counts(4, rank, world)[:3] == (predictions, pairs, tokens)


def test_full_sentences_of_a_share_equal_those_of_its_documents(tmp_path: Path) -> None:
    share, shards = PlanSet(length=32, document_range=(0.5, 0.8)), [made.text(60, seed) for seed in (1, 2)]
    hashes = [np.array([text_hash(document) for document in shard], np.uint64) for shard in shards]
    members = [in_range(each, share.document_range) for each in hashes]
    alone = [[shard[i] for i in np.flatnonzero(member)] for shard, member in zip(shards, members, strict=True)]
    sources = [made.corpus(tmp_path / name, each) for name, each in (("all", shards), ("alone", alone))]
    vocab, found = made.vocabulary(tmp_path / "vocab", sources[0]), []
    config = ExamplesConfig(plan="full-sentences", passes=2, heldout=0.1, workers=1)
    for source, plan_set in zip(sources, (share, PlanSet(length=32)), strict=True):
        context = StageContext(tmp_path / f"{source.path.name}-examples")
        artifact = examples_stage.run(config, (plan_set,), Inputs(source, vocab), context)
        loader = open_loader(artifact, plan_set, changed(length=32), vocab)
        found.append(batch_hash(loader.batch(0, loader.total)))
        assert Plans.open(artifact, plan_set).rows[0]["breaks"].max() > 0
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "file", ["store/train.tokens", "store/train.starts", f"plans/train/{made.SETS[0].name}/00.rows"]
)
def test_a_file_that_is_cut_while_training_reads_it_is_named(examples: Artifact, tmp_path: Path, file: str) -> None:
    """To read beyond its end would kill the process with a signal."""
    folder = Path(shutil.copytree(examples.path, tmp_path / "examples"))
    loader = open_loader(open_artifact(folder), made.SETS[0], SETTINGS)
    loader.step(0)
    size = (folder / file).stat().st_size
    os.truncate(folder / file, size // 2)
    expected = rf"{file} was truncated while it was read: it has {size // 2:,} bytes of {size:,}\. Restore it, or run"
    for read in (loader.step, loader.counts):
        with pytest.raises(ArtifactError, match=expected):
            read(1)


def test_the_mean_length_is_that_of_the_first_epoch(examples: Artifact) -> None:
    size = open_loader(examples, made.SETS[0], SETTINGS).examples.sizes[0]
    loader = open_loader(examples, made.SETS[0], changed(global_batch=size))
    assert loader.examples.mean_tokens == pytest.approx(loader.counts(0)[2] / size)


def test_the_same_question_has_the_same_answer(examples: Artifact) -> None:
    first, second = (open_loader(examples, made.SETS[0], SETTINGS) for _ in range(2))
    first.step(0)
    assert [batch_hash(b) for b in first.step(3)] == [batch_hash(b) for b in second.step(3)]


@pytest.mark.parametrize("change", [{"seed": 2}, {"phase": "two"}])
def test_seed_and_phase_change_the_order(examples: Artifact, change: dict[str, object]) -> None:
    a = open_loader(examples, made.SETS[0], SETTINGS).step(0)
    b = open_loader(examples, made.SETS[0], changed(**change)).step(0)
    assert batch_hash(a[0]) != batch_hash(b[0])


def test_epochs_follow_each_other_without_a_seam(examples: Artifact) -> None:
    plans = Plans.open(examples, made.SETS[0])
    epochs, sizes = Epochs(plans.sizes, 1, "one"), plans.sizes
    total = int(sizes.sum())
    found = epochs.locate(np.arange(2 * total))
    assert [(epoch, number) for epoch, number, _ in found] == [(e, e % 3) for e in range(6)]
    for epoch, _, rows in found:
        assert sorted(rows.tolist()) == list(range(sizes[epoch % 3])), "each epoch takes every row once"
    assert found[0][2].tolist() != found[3][2].tolist(), "the same pass comes back in another order"
    across = epochs.locate(np.arange(sizes[0] - 3, sizes[0] + 2))
    assert [(e, rows.tolist()) for e, _, rows in across] == [
        (0, found[0][2][-3:].tolist()),
        (1, found[1][2][:2].tolist()),
    ]


def test_masks_are_fresh_when_a_pass_returns(examples: Artifact) -> None:
    """One epoch and the next one over the same pass: the same text without masks, not with them."""
    total = sum(Plans.open(examples, made.SETS[0]).sizes.tolist())
    loader = open_loader(examples, made.SETS[0], changed(global_batch=total))
    shown: list[Counter[bytes]] = []
    for step in (0, 1):
        rows = [row for batch in loader.step(step) for row in made.rows_of(batch)]
        shown.append(Counter(tokens for tokens, *_ in rows))
    assert len(shown[0] & shown[1]) < 0.1 * total


def test_replacements_follow_the_switch(examples: Artifact) -> None:
    vocabulary = Store.open(examples).vocabulary
    reserved = {vocabulary.pad, vocabulary.unk, vocabulary.cls, vocabulary.sep, *vocabulary.unused}
    seen = {}
    for kind in ("words", "all"):
        masking = MaskingConfig.model_validate({"random_tokens": kind, "rate": 0.9, "max_predictions": 64})
        loader = open_loader(examples, made.SETS[0], changed(masking=masking, global_batch=600))
        tokens = np.concatenate([batch.token_ids[batch.prediction_positions] for batch in loader.step(0)])
        seen[kind] = reserved & set(tokens.tolist())
    assert not seen["words"] and seen["all"]


def test_shares_of_the_documents_have_no_text_in_common(examples: Artifact) -> None:
    store = Store.open(examples)
    owner = np.repeat(np.arange(len(store.hashes)), np.diff(store.documents.astype(int)))
    of_token = np.repeat(owner, store.sentences)
    touched = []
    for plan_set in made.SETS[1:]:
        plans = Plans.open(examples, plan_set)
        documents: set[int] = set()
        for number, rows in enumerate(plans.rows):
            shift = store.shard_tokens[np.searchsorted(plans.shard_ends[number], np.arange(len(rows)), side="right")]
            documents |= set(of_token[rows["a_start"] + shift]) | set(of_token[rows["b_start"] + shift])
        touched.append(documents)
    assert touched[0] and touched[1] and not touched[0] & touched[1]


def heldout(examples: Artifact, micro_batch: int = 8, most: int | None = None) -> list[MicroBatch]:
    return list(heldout_batches(examples, 64, 10, 0.15, micro_batch, most))


def test_held_out_batches_are_every_row_once_with_fixed_masks(examples: Artifact) -> None:
    a, b = heldout(examples), heldout(examples)
    assert [batch_hash(x) for x in a] == [batch_hash(x) for x in b] and len(a) > 1
    assert sum(x.counts.sequences for x in a) == Plans.open(examples, made.SETS[0], "heldout").sizes[0]
    assert max(x.counts.sequences for x in a) == 8


def test_held_out_rows_do_not_depend_on_the_batch_and_can_be_thinned(examples: Artifact) -> None:
    whole = [row for batch in heldout(examples) for row in made.rows_of(batch)]
    assert whole == [row for batch in heldout(examples, micro_batch=3) for row in made.rows_of(batch)]
    few = [row for batch in heldout(examples, most=9) for row in made.rows_of(batch)]
    assert few == [whole[i * len(whole) // 9] for i in range(9)]


def test_plans_that_were_not_made_are_named(examples: Artifact) -> None:
    with pytest.raises(ArtifactError, match=r"no train plans '128', only 64, 32-0\.0-0\.9, 32-0\.9-1\.0"):
        Plans.open(examples, PlanSet(length=128))


def test_drawing_needs_neither_torch_nor_tokenizers() -> None:
    code = "import sys, bertwright.examples.loader; assert not {'torch', 'tokenizers', 'zstandard'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "changes", [{"unit": "words"}, {"unit": "spans"}, {"count": "bernoulli"}, {"rate": [[0, 0.3]]}]
)
def test_every_rule_of_masking_is_counted_as_it_is_drawn(examples: Artifact, changes: dict[str, object]) -> None:
    loader = open_loader(examples, made.SETS[0], changed(masking=MaskingConfig.model_validate(changes)))
    for rank in range(3):
        batches = loader.step(2, rank, 3)
        total = tuple(sum(column) for column in zip(*(b.counts for b in batches), strict=True))
        assert loader.counts(2, rank, 3)[:3] == (total[2], total[0], total[1])


def test_static_masks_return_with_the_pass(examples: Artifact) -> None:
    """As in the originals' files: pass 0 is epoch 0 and epoch 3 of three passes, in another order."""
    total = [int(size) for size in Plans.open(examples, made.SETS[0]).sizes]
    loader = open_loader(examples, made.SETS[0], changed(global_batch=1, masking=MaskingConfig(static=True)))
    epochs = []
    for first in (0, sum(total)):
        steps = range(first, first + total[0])
        epochs.append([row for k in steps for batch in loader.step(k) for row in made.rows_of(batch)])
    assert Counter(epochs[0]) == Counter(epochs[1]) and epochs[0] != epochs[1]


def test_packed_rows_hold_whole_sequences(examples: Artifact) -> None:
    alone = open_loader(examples, made.SETS[0], SETTINGS).step(3)
    packed = open_loader(examples, made.SETS[0], changed(micro_batching=MicroBatching(4, row_tokens=64))).step(3)
    sequences = [Counter(row for batch in batches for row in made.rows_of(batch)) for batches in (alone, packed)]
    assert sequences[0] == sequences[1]
    for batch in packed:
        assert set(batch.cu_rows.tolist()) <= set(batch.cu_seqlens.tolist()) and len(batch.cu_rows) <= 5
        assert np.diff(batch.cu_rows).max() <= 64
        assert (batch.position_ids[batch.cu_seqlens[:-1]] == 0).all()
    assert sum(len(batch.cu_rows) - 1 for batch in packed) < sum(len(batch.cu_seqlens) - 1 for batch in packed)
