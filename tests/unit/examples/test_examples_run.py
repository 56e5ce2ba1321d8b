import hashlib
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.rows import each_row
from tests.unit.examples import made

from bertwright.core.artifact import Artifact, open_artifact, seal
from bertwright.core.config import Identity
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.stage_context import StageContext
from bertwright.core.task_records import is_done
from bertwright.core.tasks import Pool
from bertwright.corpus.heldout import heldout_place
from bertwright.examples import run as stage
from bertwright.examples import shard
from bertwright.examples.batch import batch_hash
from bertwright.examples.config import ExamplesConfig, MaskingConfig, MicroBatching, PlanSet
from bertwright.examples.loader import LoaderSettings
from bertwright.examples.planned import open_loader
from bertwright.examples.run_tasks import Inputs
from bertwright.examples.store import Store

pytestmark = pytest.mark.heavy


def contents(artifact: Artifact) -> dict[str, str]:
    return {name: hashlib.sha256(artifact.file(name).read_bytes()).hexdigest() for name in artifact.names()}


def test_files_and_counts(examples: Artifact) -> None:
    names = examples.names()
    assert "vocabulary.json" in names and "store/train.tokens" in names and "plans/train/32-0.9-1.0/02.rows" in names
    assert "plans/heldout/32/00.rows" in names and "plans/heldout/32/01.rows" not in names
    counts = examples.counts
    assert counts["documents"] == 120 == counts["train"]["documents"] + counts["heldout"]["documents"]
    assert examples.file("plans/train/64/00.rows").stat().st_size == 15 * counts["train"]["rows"]["64"][0]
    assert not (examples.path / ".parts").exists()


def test_two_workers_make_the_same_bytes(examples: Artifact, tmp_path: Path) -> None:
    assert contents(made.examples(tmp_path, workers=2)) == contents(examples)


def test_an_interrupted_stage_keeps_finished_shards(
    examples: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = shard._tokenised
    read: list[int] = []

    def killed_at_the_second(task: shard.ShardTask) -> object:
        if task.number == 1 and not read.count(1):
            read.append(1)
            raise KeyboardInterrupt
        read.append(task.number)
        return whole(task)

    monkeypatch.setattr(shard, "_tokenised", killed_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        made.examples(tmp_path)
    assert not (tmp_path / "examples").exists()
    assert contents(made.examples(tmp_path)) == contents(examples)
    assert read == [0, 1, 1], "shard 0 was read once"


def test_damaged_drafts_of_a_stage_are_made_again(
    examples: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("bertwright.examples.run.heldout_contamination", stop)
        made.examples(tmp_path / "begun")
    (draft,) = (tmp_path / "begun").glob(".examples.*.draft")
    files = [path for path in sorted(draft.rglob("*")) if path.is_file()]
    parts = [path for path in files if ".parts" in path.parts and path.name.startswith("00000.")]
    assert len(parts) > 12 and len(files) > 2 * len(parts)
    for path in parts:
        flip(path)
        assert path.stat().st_size == 0 or not is_done(draft / ".parts" / "00000.json"), path
        flip(path)
    for path in files:
        flip(path)
    assert contents(made.examples(tmp_path / "begun")) == contents(examples)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[len(data) // 2] ^= 4
        path.write_bytes(data)


def test_a_task_carries_the_manifest_of_its_shard_alone(examples: Artifact, tmp_path: Path) -> None:
    carried: list[tuple[str, list[str]]] = []

    class Heard(Pool):
        def map(self, function: Any, tasks: Any, *rest: Any) -> list[Any]:
            tasks = list(tasks)
            carried.extend((task.name, task.corpus.names()) for task in tasks)
            return super().map(function, tasks, *rest)

    inputs = (open_artifact(examples.path.parent / name) for name in ("corpus", "vocab"))
    stage.run(
        ExamplesConfig(workers=1),
        made.SETS[:1],
        Inputs(*inputs),
        StageContext(tmp_path / "examples", executor=Heard(1)),
    )
    assert len(carried) == 2 and all(names == [name] for name, names in carried)


def test_full_sentences_have_sep_where_documents_meet(tmp_path: Path) -> None:
    artifact = made.examples(tmp_path, plan="full-sentences")
    store = Store.open(artifact)
    ids, bounds = store.tokens.tolist(), store.starts.tolist()
    documents = [ids[a:b] for a, b in pairwise(bounds)]
    settings = LoaderSettings(64, MaskingConfig(), 100, MicroBatching(100), 1, "one")
    (batch,) = open_loader(artifact, made.SETS[0], settings).step(0)
    tokens = batch.token_ids.copy()
    tokens[batch.prediction_positions] = batch.labels
    met = 0
    for a, b in pairwise(batch.cu_seqlens):
        ends = a + np.flatnonzero(tokens[a:b] == store.vocabulary.sep)
        pieces = [tokens[c + 1 : d].tolist() for c, d in pairwise([a, *ends])]
        for before, after in pairwise(pieces):
            met += 1
            assert any(
                first[-len(before) :] == before and second[: len(after)] == after
                for first, second in pairwise(documents)
            )
    assert met > 10


def test_without_pairs_there_are_no_pair_labels(tmp_path: Path) -> None:
    artifact = made.examples(tmp_path, plan="doc-sentences")
    settings = LoaderSettings(64, MaskingConfig(max_predictions=10), 20, MicroBatching(8), 1, "one")
    loader = open_loader(artifact, made.SETS[0], settings)
    for batch in loader.step(0):
        assert not batch.segment_ids.any() and not batch.sequence_weights.any()
    assert loader.counts(0)[1] == 0


def test_a_share_of_no_document_holds_one_out(examples: Artifact, tmp_path: Path) -> None:
    base = examples.path.parent
    inputs = open_artifact(base / "corpus"), open_artifact(base / "vocab")
    said: list[str] = []

    def build(out: str, share: float) -> Artifact:
        config = ExamplesConfig(heldout=share, passes=2, workers=1)
        return stage.run(config, made.SETS[:1], Inputs(*inputs), StageContext(tmp_path / out, made.Said(said)))

    few = build("few", 1e-5)
    assert few.counts["heldout"]["documents"] == 1 and few.counts["train"]["documents"] == 119
    assert (
        "examples: no document of 120 fell into the held-out share examples.heldout=1e-05; one document is "
        "held out anyway" in said
    )
    assert any(line.endswith("will be imprecise; raise examples.heldout") for line in said)
    place = float(heldout_place(Store.open(few, "heldout").hashes)[0])
    assert np.all(heldout_place(Store.open(few).hashes) > place)
    said.clear()
    larger = build("larger", place + 1e-9)  # the share that takes this document and no other
    assert contents(larger) == contents(few)
    assert not any("is taken" in line for line in said)


def test_a_share_of_all_documents_leaves_one_for_training(examples: Artifact, tmp_path: Path) -> None:
    base = examples.path.parent
    inputs, said = (open_artifact(base / "corpus"), open_artifact(base / "vocab")), list[str]()
    config = ExamplesConfig(heldout=1 - 1e-9, passes=2, workers=1)
    most = stage.run(config, made.SETS[:1], Inputs(*inputs), StageContext(tmp_path / "most", made.Said(said)))
    assert most.counts["train"]["documents"] == 1 and most.counts["heldout"]["documents"] == 119
    assert any("all 120 documents fell into the held-out share" in line for line in said)
    place = float(heldout_place(Store.open(most).hashes)[0])
    assert np.all(heldout_place(Store.open(most, "heldout").hashes) < place)


@each_row("share", [0.01, 1 - 1e-9])
def test_of_a_corpus_of_one_document_the_last_tenth_is_held_out(share: float, tmp_path: Path) -> None:
    document = [sentence for text in made.text(8, seed=3) for sentence in text]
    source = made.corpus(tmp_path / "corpus", [[document]])
    vocab = made.vocabulary(tmp_path / "vocab", made.corpus(tmp_path / "other", [made.text(60)]))
    said: list[str] = []
    config = ExamplesConfig(heldout=share, workers=1, passes=2)
    context = StageContext(tmp_path / "examples", made.Said(said))
    made_of_one = stage.run(config, made.SETS[:1], Inputs(source, vocab), context)
    assert any("the corpus is one document: its last tenth is held out" in line for line in said)
    assert any(line.endswith("will be imprecise; only more text makes them more precise") for line in said)
    train, heldout = Store.open(made_of_one), Store.open(made_of_one, "heldout")
    assert len(heldout.sentences) == len(document) // 10 and len(train.sentences) == len(document) - len(
        heldout.sentences
    )
    assert made_of_one.counts["train"]["rows"]["64"][0] and made_of_one.counts["heldout"]["rows"]["64"][0]


def test_one_sentence_is_no_corpus(tmp_path: Path) -> None:
    source = made.corpus(tmp_path / "corpus", [[["Ba di fu."]]])
    vocab = made.vocabulary(tmp_path / "vocab", made.corpus(tmp_path / "other", [made.text(60)]))
    with pytest.raises(DataError, match=r"one document of one sentence.*Add text to corpus\.source"):
        stage.run(ExamplesConfig(workers=1), made.SETS[:1], Inputs(source, vocab), StageContext(tmp_path / "examples"))


def test_something_must_be_held_out() -> None:
    with pytest.raises(RecipeError, match="heldout: 0.0 must be above 0"):
        ExamplesConfig(heldout=0.0)


def test_an_empty_share_is_an_error(examples: Artifact, tmp_path: Path) -> None:
    base = examples.path.parent
    inputs = open_artifact(base / "corpus"), open_artifact(base / "vocab")
    sets = (PlanSet(length=32, document_range=(0.5, 0.5001)),)
    with pytest.raises(DataError, match=r"no training examples for 32-0\.5-0\.5001"):
        stage.run(ExamplesConfig(workers=1), sets, Inputs(*inputs), StageContext(tmp_path / "examples"))


def test_plans_do_not_depend_on_the_other_sets(examples: Artifact, tmp_path: Path) -> None:
    base = examples.path.parent
    inputs = open_artifact(base / "corpus"), open_artifact(base / "vocab")
    config = ExamplesConfig(passes=3, heldout=0.1, workers=1)
    alone = stage.run(config, made.SETS[:1], Inputs(*inputs), StageContext(tmp_path / "examples"))
    settings = LoaderSettings(64, MaskingConfig(max_predictions=10), 20, MicroBatching(8), 1, "one")
    hashes = [[batch_hash(b) for b in open_loader(a, made.SETS[0], settings).step(2)] for a in (alone, examples)]
    assert hashes[0] == hashes[1]


@each_row("documents", [(0.5, 0.5), (0.9, 0.1), (-0.1, 0.5), (0.0, 1.1)])
def test_a_share_must_be_a_range(documents: tuple[float, float]) -> None:
    with pytest.raises(RecipeError, match="must rise within 0 and 1"):
        PlanSet(length=128, document_range=documents)


def test_nearby_shares_have_names_of_their_own() -> None:
    shares = [(0.0, 0.9), (0.0, 0.9000001), (0.0, 1 / 3), (1 / 3, 1.0), (0.0, 1.0)]
    names = [PlanSet(length=128, document_range=share).name for share in shares]
    assert len(set(names)) == 5
    assert names[0] == "128-0.0-0.9" and names[-1] == "128"


def test_the_identity_is_known_from_fingerprints_alone() -> None:
    config, inputs = ExamplesConfig(workers=3), {"corpus": "c", "vocab": "v", "train": "not asked for"}
    found = stage.identity(config, (*made.SETS, made.SETS[0]), inputs)
    assert found.inputs == {"corpus": "c", "vocab": "v"}
    assert found.fingerprint == stage.identity(ExamplesConfig(workers=1), made.SETS, inputs).fingerprint
    assert found.fingerprint != stage.identity(config, made.SETS[:1], inputs).fingerprint
    assert found.fingerprint != stage.identity(config, made.SETS, inputs | {"vocab": "w"}).fingerprint


def test_the_built_artifact_has_that_identity(examples: Artifact) -> None:
    config = ExamplesConfig(passes=3, heldout=0.1)
    inputs = {name: open_artifact(examples.path.parent / name).fingerprint for name in ("corpus", "vocab")}
    assert stage.identity(config, made.SETS, inputs).fingerprint == examples.fingerprint


def test_killed_while_sealing_no_shard_is_read_again(
    examples: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    def killed_at_examples(folder: Path, identity: Identity, *rest: Any) -> None:
        return killed() if identity.stage == "examples" else seal(folder, identity, *rest)

    with monkeypatch.context() as patch:
        patch.setattr("bertwright.core.artifact.seal", killed_at_examples)
        with pytest.raises(KeyboardInterrupt):
            made.examples(tmp_path)
    monkeypatch.setattr(shard, "_tokenised", killed)
    assert contents(made.examples(tmp_path)) == contents(examples)


@each_row("module", ["vocab", "examples"])
def test_the_stage_is_imported_without_torch(module: str) -> None:
    code = f"import sys, bertwright.{module}.run; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
