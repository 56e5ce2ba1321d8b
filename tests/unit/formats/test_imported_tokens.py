"""Phases that train on tokenised documents made elsewhere: Megatron's files."""

import shutil
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.formats.test_imported_data import Notes, data, prepared
from tests.unit.formats.test_megatron import write_new, write_old

from bertwright import Recipe, cli, run
from bertwright.cli.batch_text import describe_batch
from bertwright.cli.conversion import ConvertOptions, convert
from bertwright.cli.describe import describe
from bertwright.core.artifact import Artifact
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import read_json, sha256
from bertwright.core.work_split import WorkSplit
from bertwright.examples.batch import MicroBatch, batch_hash
from bertwright.examples.config import PlanSet
from bertwright.examples.instances import ends
from bertwright.examples.loader import Loader
from bertwright.examples.plan_builder import plan_passes
from bertwright.examples.planned import PlannedExamples
from bertwright.examples.plans import Plans
from bertwright.examples.store import Documents, Store
from bertwright.formats.imported import documents as imported_documents
from bertwright.formats.megatron import open_index
from bertwright.formats.repetitions import row_hashes
from bertwright.formats.target import Target
from bertwright.pipeline.run_folder import RunFolder
from bertwright.train.settings.phases import resolve_phases

Nested = list[list[list[int]]]
WITHOUT_CHANCE = ("examples.plan=doc-sentences", "examples.short_seq_prob=0")
"""Settings that leave nothing in a plan to chance, so that hashes of documents play no part."""


@pytest.fixture(scope="session")
def own(two_phases: Path) -> RunFolder:
    return RunFolder(two_phases.parent / "own")


@pytest.fixture(scope="session")
def written(own: RunFolder) -> Path:
    """The training documents of the run as Megatron's files."""
    convert(own.path, own.path.parent / "megatron", Target("megatron"), ConvertOptions(files=3))
    return own.path.parent / "megatron"


def nested(documents: Documents) -> Nested:
    ids, stops = documents.tokens.tolist(), ends(documents.sentences).tolist()
    sentences = [ids[a:b] for a, b in pairwise(stops)]
    return [sentences[a:b] for a, b in pairwise(documents.documents.astype(int).tolist())]


def flat(document: list[list[int]]) -> list[int]:
    return [number for sentence in document for number in sentence]


def store_of(folder: RunFolder, phase: int = 0) -> Store:
    return Store.open(folder.artifact("examples"), within=f"imported/{phase}/")


def facts_of(folder: RunFolder, phase: int = 0) -> dict[str, Any]:
    return dict(read_json(folder.path / f"examples/imported/{phase}/facts.json"))


def loaders_of(folder: RunFolder, *changes: str) -> list[Loader]:
    recipe = Recipe.load(folder.path / "recipe.toml", changes)
    phases = resolve_phases(recipe.train, folder.artifact("examples"), folder.artifact("vocab"))
    found = [phase.loader for phase in phases]
    assert all(isinstance(each.examples, PlannedExamples) for each in found)
    return found


def saved(folder: Path, *sets: Nested, write: Callable[..., Any] = write_new) -> Path:
    """A folder with a pair of files for each of the sets."""
    folder.mkdir()
    for number, documents in enumerate(sets):
        extra = (np.uint16, 8) if write is write_new else ()
        write(folder / f"text_{number}", documents, *extra)
    return folder


def originals(batches: list[MicroBatch]) -> list[list[int]]:
    """The sequences before masking."""
    found = []
    for batch in batches:
        tokens = batch.token_ids.copy()
        tokens[batch.prediction_positions] = batch.labels
        found += [tokens[a:b].tolist() for a, b in pairwise(batch.cu_seqlens)]
    return found


def test_a_run_becomes_files_with_its_training_documents(own: RunFolder, written: Path, tmp_path: Path) -> None:
    store = Store.open(own.artifact("examples"))
    assert [file.name for file in sorted(written.glob("*.idx"))] == [
        f"corpus_en_{number:05}_text_sentence.idx" for number in range(3)
    ]
    indices = [open_index(file) for file in sorted(written.glob("*.idx"))]
    blocks = [index.read(*piece) for index in indices for piece in index.pieces(100)]
    assert np.concatenate([block.ids for block in blocks]).tolist() == store.tokens.tolist()
    assert np.concatenate([block.lengths for block in blocks]).tolist() == store.sentences.tolist()
    assert ends(np.concatenate([block.counts for block in blocks])).tolist() == store.documents.tolist()
    note = convert(own.path, tmp_path / "shards", Target("megatron"))
    assert len(note["files"]) == own.artifact("examples").counts["shards"] and note["documents"] == len(store.hashes)
    with pytest.raises(RecipeError, match="no held-out documents. Leave out --heldout"):
        convert(own.path, tmp_path / "more", Target("megatron"), ConvertOptions(heldout=3))
    with pytest.raises(DataError, match="token documents, not finished .*. Train on the files directly"):
        convert(written, tmp_path / "more", Target("tfrecord"))


@pytest.mark.parametrize("plan", ["next-sentence", "sentence-order", "full-sentences"])
def test_plans_are_those_of_our_store_but_for_the_hashes(
    own: RunFolder, written: Path, two_phases: Path, tmp_path: Path, plan: str
) -> None:
    """With one stretch for each file, as many files as here, the plans of each are those of its documents."""
    folder = prepared(two_phases, tmp_path / "run", *data([written, written]), f"examples.plan={plan}")
    store, config = Store.open(own.artifact("examples")), Recipe.load(folder.path / "recipe.toml").examples
    edges = [len(store.hashes) * i // 3 for i in range(4)]
    for phase, length in enumerate((16, 32)):
        found = store_of(folder, phase)
        assert nested(found) == nested(store)
        plans = Plans.open(folder.artifact("examples"), PlanSet(length=length), within=f"imported/{phase}/")
        expected: list[list[Any]] = [[], []]
        for a, b in pairwise(edges):
            first, last = (int(store.documents[n]) for n in (a, b))
            start, stop = (int(store.starts[n]) for n in (a, b))
            part = Documents(
                store.tokens[start:stop],
                store.sentences[first:last],
                store.documents[a : b + 1] - store.documents[a],
                row_hashes(store.tokens[start:stop], (store.starts[a : b + 1] - store.starts[a]).astype(np.int64)),
            )
            for number, rows in enumerate(plan_passes(part, np.ones(b - a, np.bool_), length, config, 2)):
                expected[number] += rows.tolist()
        assert [rows.tolist() for rows in plans.rows] == expected
        assert facts_of(folder, phase)["examples"] == sum(map(len, expected))


@pytest.mark.parametrize("cut", [[], ["train.phases.0.packing=true"]])
def test_deterministic_plans_give_the_batches_of_our_store(
    two_phases: Path, written: Path, tmp_path: Path, cut: list[str]
) -> None:
    """To the bit, fresh masks included: order and masks are functions of the recipe and of the number of the row."""
    ours = prepared(two_phases, tmp_path / "ours", *WITHOUT_CHANCE, *cut)
    theirs = prepared(two_phases, tmp_path / "theirs", *data([written, written]), *WITHOUT_CHANCE, *cut)
    for mine, other in zip(loaders_of(ours), loaders_of(theirs), strict=True):
        assert mine.examples.sizes == other.examples.sizes and mine.examples.mean_tokens == other.examples.mean_tokens
        for step in (0, 1, 40):
            for rank in (0, 1):
                batches = mine.step(step, rank, 2), other.step(step, rank, 2)
                assert [batch_hash(b) for b in batches[0]] == [batch_hash(b) for b in batches[1]]
                assert mine.counts(step, rank, 2) == other.counts(step, rank, 2)


def test_pairs_are_made_of_the_sentences(two_phases: Path, written: Path, tmp_path: Path) -> None:
    """[CLS] A [SEP] B [SEP]: A and B are stretches of a document's tokens, B of the same one where it is next."""
    folder = prepared(two_phases, tmp_path / "run", *data([written, written]))
    vocabulary, documents = store_of(folder).vocabulary, [flat(each) for each in nested(store_of(folder))]
    texts = [" ".join(map(str, ["", *each, ""])) for each in documents]

    def owners(ids: list[int]) -> set[int]:
        return {number for number, text in enumerate(texts) if " ".join(map(str, ["", *ids, ""])) in text}

    loader, labels = loaders_of(folder)[1], Counter[int]()
    for batch in loader.step(0) + loader.step(1):
        for ids, label, paired in zip(originals([batch]), batch.sequence_labels, batch.sequence_weights, strict=True):
            assert ids[0] == vocabulary.cls and ids[-1] == vocabulary.sep and paired == 1
            middle = ids.index(vocabulary.sep)
            a, b = owners(ids[1:middle]), owners(ids[middle + 1 : -1])
            assert a and b
            assert a & b if label == 0 else a != b or len(a) > 1
            labels[int(label)] += 1
    assert labels.total() == 16 and len(labels) == 2


def test_the_command_line_trains_both_phases_on_both_headers(
    own: RunFolder,
    two_phases: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    documents = nested(Store.open(own.artifact("examples")))
    new = saved(tmp_path / "new", documents[:60], documents[60:])
    old = saved(tmp_path / "old", documents, write=write_old) / "text_0.idx"
    arguments = [str(two_phases), *data([new, old]), "--out", str(tmp_path / "run"), "--until", "train"]
    monkeypatch.setattr(sys, "argv", ["bertwright", "run", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    printed = " ".join("".join(capsys.readouterr()).split())
    assert end.value.code == 0, printed
    assert (
        printed.count(f"is {len(documents):,} documents of ") == 2
        and "held out here; this cannot be checked" not in printed
    )
    folder = RunFolder(tmp_path / "run")
    assert folder.artifact("train").counts["steps"] == 5
    assert nested(store_of(folder, 0)) == nested(store_of(folder, 1)) == documents
    for phase in (0, 1):
        batch = describe_batch(folder.path, phase, 1)
        assert batch["sequences"] == 8 and "[MASK=" in str(batch)
    shutil.rmtree(new)
    before = folder.artifact("train").fingerprint
    recipe = Recipe.load(folder.path / "recipe.toml", given=False)
    assert run(recipe, folder.path, ["train"]).artifact("train").fingerprint == before, "the files are not needed again"


def test_the_end_of_a_document_is_taken_off(own: RunFolder, two_phases: Path, tmp_path: Path) -> None:
    """[SEP], or what Megatron's tokenizer numbers [EOS]: two entries more than the vocabulary has."""
    store = Store.open(own.artifact("examples"))
    documents, marks = nested(store), (store.vocabulary.sep, store.vocabulary.size + 1)
    ended = [[*document[:-1], [*document[-1], marks[i % 2]]] for i, document in enumerate(documents)]
    ended += [[*documents[0], [], [store.vocabulary.sep]], [[store.vocabulary.sep]], [[]], []]
    notes = Notes()
    folder = prepared(two_phases, tmp_path / "run", *data([saved(tmp_path / "eod", ended)] * 2), log=notes)
    assert nested(store_of(folder)) == [*documents, documents[0]]
    assert any(f"removed the end-of-document id of {len(documents) + 2:,} documents" in each for each in notes.said)


def test_an_end_of_document_among_the_entries() -> None:
    assert imported_documents._end_of_document(["[EOS]", "a"]) == 0
    assert imported_documents._end_of_document(["a", "[BOS]"]) == 2
    assert imported_documents._end_of_document(["a", "b"]) == 3


@pytest.mark.parametrize("plan", ["next-sentence", "doc-sentences", "full-sentences"])
def test_held_out_documents_are_not_trained_on(
    own: RunFolder, two_phases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: str
) -> None:
    monkeypatch.setattr(imported_documents, "STRETCH", 2000)
    train, heldout = (nested(Store.open(own.artifact("examples"), split)) for split in ("train", "heldout"))
    mixed = [*train[:20], *heldout, *train[20:], heldout[0]]
    options = f"examples.plan={plan}", "examples.short_seq_prob=0"
    clean = prepared(two_phases, tmp_path / "clean", *data([saved(tmp_path / "a", train)] * 2), *options)
    notes = Notes()
    leaky = prepared(two_phases, tmp_path / "run", *data([saved(tmp_path / "b", mixed)] * 2), *options, log=notes)
    leaked = len(heldout) + 1
    assert any(f"dropped {leaked:,} documents with the same tokens as a held-out one" in each for each in notes.said)
    assert facts_of(leaky)["heldout"] == leaked and facts_of(clean)["heldout"] == 0
    store = store_of(leaky)
    assert [document for document in nested(store) if set(flat(document)) != {store.vocabulary.pad}] == train
    sequences = []
    for folder in (clean, leaky):
        size, more = facts_of(folder, 1)["rows"]
        whole = loaders_of(folder, f"train.phases.1.batch={size}")[1]
        assert whole.examples.sizes == [size, more]
        sequences.append(Counter(map(tuple, originals(whole.step(0)))))
    assert sum(store.vocabulary.pad in sequence for sequence in sequences[1]) == 0
    if plan == "doc-sentences":
        assert sequences[0] == sequences[1]


def test_a_set_of_held_out_documents_alone_is_refused(own: RunFolder, two_phases: Path, tmp_path: Path) -> None:
    heldout = nested(Store.open(own.artifact("examples"), "heldout"))
    with pytest.raises(DataError, match=r"no document to train on in .* \(all of them are held out\)"):
        prepared(two_phases, tmp_path / "run", *data([saved(tmp_path / "all", heldout)] * 2))


def test_documents_of_one_sentence_make_no_pairs(own: RunFolder, two_phases: Path, tmp_path: Path) -> None:
    long = [[flat(document)] for document in nested(Store.open(own.artifact("examples")))]
    options = data([saved(tmp_path / "long", long, [[]])] * 2)
    message = (
        r"107 of 107 documents in .* have only one sentence, but examples.plan=next-sentence pairs .*full-sentences, or"
    )
    with pytest.raises(DataError, match=message.replace("107", f"{len(long):,}")):
        prepared(two_phases, tmp_path / "run", *options)
    folder = prepared(two_phases, tmp_path / "run", *options, *WITHOUT_CHANCE)
    assert nested(store_of(folder)) == long
    rows = Plans.open(folder.artifact("examples"), PlanSet(length=16), within="imported/0/").rows[0]
    assert rows["a_count"].sum() == sum(len(document[0]) for document in long), "every token, in several rows"


def test_other_vocabulary_is_detected_where_possible(own: RunFolder, two_phases: Path, tmp_path: Path) -> None:
    store = Store.open(own.artifact("examples"))
    documents, size = nested(store), store.vocabulary.size
    beyond = [*documents[:9], [documents[0][0], [7, size, 7]]]
    with pytest.raises(
        DataError, match=rf"text_0.idx: document 9 has id {size}, but the vocabulary has {size} entries. .*vocab.file"
    ):
        prepared(two_phases, tmp_path / "run", *data([saved(tmp_path / "beyond", beyond)] * 2))
    special = [[[store.vocabulary.mask, 9], [9, 9]], *documents]
    with pytest.raises(DataError, match=r"20 of 118 documents in .* \[MASK\], which text never does"):
        prepared(
            two_phases, tmp_path / "run", *data([saved(tmp_path / "two", [*special[:1] * 20, *documents[:98]])] * 2)
        )
    notes = Notes()
    folder = prepared(two_phases, tmp_path / "run", *data([saved(tmp_path / "one", special)] * 2), log=notes)
    assert nested(store_of(folder)) == documents
    assert any("dropped 1 documents with special ids inside" in each for each in notes.said)


def test_damaged_files_are_skipped_whole_and_only_on_request(
    own: RunFolder, two_phases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imported_documents, "STRETCH", 300)
    documents = nested(Store.open(own.artifact("examples")))
    source = saved(tmp_path / "damaged", documents[:40], documents[40:80], documents[80:])
    index = bytearray((source / "text_1.idx").read_bytes())
    index[34 + 4 * 30 : 34 + 4 * 31] = b"\xff\xff\xff\x7f"  # a sentence in the middle of the file
    (source / "text_1.idx").write_bytes(index)
    options, key = data([source] * 2), "train.phases.0.quarantine=true"
    with pytest.raises(
        DataError, match=rf"data: .*text_1.idx: a sentence ends after the .* set {key} to skip damaged files"
    ):
        prepared(two_phases, tmp_path / "run", *options)
    notes = Notes()
    keys = [key, key.replace("0", "1")]
    folder = prepared(two_phases, tmp_path / "run", *options, *keys, log=notes)
    assert any("skipped text_1.idx: a sentence ends after" in each for each in notes.said)
    assert nested(store_of(folder)) == documents[:40] + documents[80:]
    left = ("text_0.idx", "text_0.bin", "text_2.idx", "text_2.bin")
    assert facts_of(folder)["files"] == [{"file": name, "sha256": sha256(source / name)} for name in left]
    loader = loaders_of(folder)[0]
    assert originals(loader.step(0)), "rows find their tokens behind the file that is left out"
    (source / "text_2.bin").write_bytes(b"")
    again = prepared(two_phases, tmp_path / "more", *options, *keys)
    assert [each["file"] for each in facts_of(again)["quarantined"]] == ["text_2.idx", "text_1.idx"]
    assert nested(store_of(again)) == documents[:40]
    (source / "text_0.bin").unlink()
    with pytest.raises(
        DataError, match=r"no document to train on in .* \(text_0.bin: cannot be read: .*; text_2.idx: "
    ):
        prepared(two_phases, tmp_path / "none", *options, *keys)


def files(artifact: Artifact) -> dict[str, str]:
    return {name: file["sha256"] for name, file in artifact.manifest["files"].items()}


def test_ranks_share_ranges_and_a_killed_import_resumes(
    two_phases: Path, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imported_documents, "STRETCH", 500)
    options = data([written, written])
    alone = prepared(two_phases, tmp_path / "alone", *options).artifact("examples")
    out, begun = tmp_path / "shared", list[int]()
    shutil.copytree(two_phases.parent / "own", out, ignore=shutil.ignore_patterns("examples"))
    whole = imported_documents.import_documents

    def killed(task: imported_documents.DocumentsTask) -> Any:
        begun.append(task.number)
        if len(begun) == 4:
            raise KeyboardInterrupt
        return whole(task)

    monkeypatch.setattr(imported_documents, "import_documents", killed)
    for rank in (0, 0, 1):
        assert not (out / "examples").exists()
        try:
            run(Recipe.load(two_phases, options), out, ["examples"], share=WorkSplit(rank, 2))
        except KeyboardInterrupt:
            assert len(begun) == 4
    stretches = len(begun) - 1
    assert stretches > 10 and files(RunFolder(out).artifact("examples")) == files(alone)


def test_the_files_are_known_by_their_content(two_phases: Path, written: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(written, tmp_path / "moved"))
    first = prepared(two_phases, tmp_path / "run", *data([written] * 2)).artifact("examples").fingerprint
    assert prepared(two_phases, tmp_path / "run", *data([moved] * 2)).artifact("examples").fingerprint == first
    tokens = moved / "corpus_en_00000_text_sentence.bin"
    tokens.write_bytes(tokens.read_bytes()[2:4] + tokens.read_bytes()[2:])
    assert prepared(two_phases, tmp_path / "run", *data([moved] * 2)).artifact("examples").fingerprint != first


def test_inspect_tells_of_token_documents(own: RunFolder, written: Path) -> None:
    facts = describe(written)
    (numbers,) = facts["set"]
    store = Store.open(own.artifact("examples"))
    assert numbers["files"] == 3 and numbers["documents"] == len(store.hashes)
    assert numbers["tokens"] == len(store.tokens) and not numbers["faults"]
