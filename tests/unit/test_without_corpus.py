"""Recipes without `[corpus]`: data made elsewhere is all there is, and part of it is held out."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.conftest import MODEL
from tests.unit.formats.test_imported_data import Notes, contents, saved
from tests.unit.formats.test_imported_tokens import nested
from tests.unit.formats.test_imported_tokens import saved as saved_documents

from bertwright import Recipe, run
from bertwright.check.check_recipe import check_recipe
from bertwright.cli.conversion import convert
from bertwright.cli.describe import describe
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import read_json
from bertwright.core.work_split import WorkSplit
from bertwright.corpus.heldout import is_heldout
from bertwright.examples.batch import MicroBatch, batch_hash
from bertwright.examples.frequencies import training_counts
from bertwright.examples.instances import Instances, concatenate
from bertwright.examples.planned import heldout_batches
from bertwright.examples.store import Store
from bertwright.formats.format import Kind
from bertwright.formats.imported import examples as imported_examples
from bertwright.formats.known import FORMATS, format_of
from bertwright.formats.repetitions import row_hashes
from bertwright.formats.target import Target
from bertwright.pipeline.run_folder import RunFolder, recorded_recipe
from bertwright.pipeline.stage import STAGES
from bertwright.train.settings.phases import resolve_phases
from bertwright.vocab.load import read_vocabulary

RECIPE = """
[vocab]
file = {vocab}

[examples]
passes = 2
heldout = 0.2
workers = 1

[model]
config = {model}

[[train.phases]]
length = 16
batch = 8
learning_rate = 1e-3
steps = 3
data = {first}

[[train.phases]]
length = 32
batch = 8
learning_rate = 1e-3
steps = 2
data = {second}

[train]
heldout_sequences = 8
device = "cpu"
"""
Write = Callable[..., Path]
Rows = Counter[tuple[bytes, bytes, int]]


@pytest.fixture
def recipe(two_phases: Path, tmp_path: Path) -> Write:
    """`recipe(first, second)`: a recipe whose two phases train on these folders."""

    def write(first: Path, second: Path) -> Path:
        (tmp_path / "bert.json").write_text(json.dumps(MODEL))
        paths = {
            "vocab": two_phases.parent / "own" / "vocab" / "vocab.txt",
            "model": tmp_path / "bert.json",
            "first": first,
            "second": second,
        }
        path = tmp_path / "data.toml"
        path.write_text(RECIPE.format(**{name: json.dumps(str(value)) for name, value in paths.items()}))
        return path

    return write


def prepared(path: Path, out: Path, *overrides: str, log: Any = None) -> RunFolder:
    return run(Recipe.load(path, overrides), out, ["corpus", "vocab", "examples"], log=log or Notes())


def entries_of(folder: RunFolder) -> list[str]:
    return read_vocabulary(folder.path / "vocab" / "vocab.txt")


def originals(batches: list[MicroBatch]) -> Rows:
    """Each sequence before masking, with its segments and the label that counts."""
    found: Rows = Counter()
    for batch in batches:
        tokens = batch.token_ids.copy()
        tokens[batch.prediction_positions] = batch.labels
        for i, (a, b) in enumerate(pairwise(batch.cu_seqlens)):
            label = int(batch.sequence_labels[i]) if batch.sequence_weights[i] else -1
            found[tokens[a:b].tobytes(), batch.segment_ids[a:b].tobytes(), label] += 1
    return found


def as_rows(every: Instances) -> Rows:
    """Examples in the form of `originals`."""
    tokens, segments = every.originals().astype(np.int64), every.segment_ids.astype(np.int64)
    cuts = [slice(a, b) for a, b in pairwise(every.cu_seqlens)]
    labels = every.next_sentence_labels.tolist()
    return Counter(
        (tokens[cut].tobytes(), segments[cut].tobytes(), label) for cut, label in zip(cuts, labels, strict=True)
    )


def held(folder: RunFolder, length: int) -> list[MicroBatch]:
    return list(heldout_batches(folder.artifact("examples"), length, length, 0.15, 64))


def trained_on(folder: RunFolder, phase: int) -> Rows:
    """The examples of one epoch of a phase."""
    recipe = Recipe.load(folder.path / "recipe.toml")
    phases = resolve_phases(recipe.train, folder.artifact("examples"), folder.artifact("vocab"))
    (size,) = set(phases[phase].loader.examples.sizes)
    whole = recipe.train.phases[phase].model_copy(update={"batch": size, "micro_batch": 0})
    config = recipe.train.model_copy(update={"phases": (*recipe.train.phases[:phase], whole)})
    loader = resolve_phases(config, folder.artifact("examples"), folder.artifact("vocab"))[phase].loader
    return originals(loader.step(0))


def training_alone(folders: list[Path], target: Path) -> list[Path]:
    """Copies of the training files in folders of their own, without test files next to them."""
    return [Path(shutil.copytree(each / "train", target / each.name / "train")) for each in folders]


def for_testing(folder: Path, kind: Kind, entries: list[str]) -> Instances:
    files = [f for f in folder.rglob("*") if f.is_file() and ("_test_" in f.name or f.parent.name == "test")]
    data = [f for f in sorted(files) if f.suffix != ".json"]
    return concatenate([block for file in data for block in format_of(kind).read(file, entries)])


@pytest.mark.parametrize("kind", [each.kind for each in FORMATS])
def test_files_for_testing_are_what_is_held_out(
    converted: Callable[[Kind], list[Path]], recipe: Write, tmp_path: Path, kind: Kind
) -> None:
    notes = Notes()
    folder = prepared(recipe(*converted(kind)), tmp_path / "run", log=notes)
    counts = folder.artifact("examples").counts
    for i, (source, length) in enumerate(zip(converted(kind), (16, 32), strict=True)):
        every = contents(source, entries_of(folder))
        tests = as_rows(for_testing(source, kind, entries_of(folder)))
        assert originals(held(folder, length)) == tests
        texts = {tokens for tokens, _, _ in tests}
        assert trained_on(folder, i) == Counter({r: n for r, n in as_rows(every).items() if r[0] not in texts})
        told = counts["heldout"]["phases"][f"train.phases.{i}"]
        assert told["examples"] == tests.total() == counts["heldout"]["rows"][f"{length}"][0] and told["share"] is None
        assert told["files"] and counts["heldout"]["sequences"][f"{length}"]["label_share"] is not None
    assert any("train.phases.0.data: " in each and " examples are held out, " in each for each in notes.said)
    assert any("train.phases.0.data: not trained on: " in each and " for testing (" in each for each in notes.said)
    assert not any("cannot be told" in each for each in notes.said)
    # Named by the folder of both phases, or each by its training files alone, they are the same files.
    together = [source.parent for source in converted(kind)]
    training = [source / "train" for source in converted(kind) if (source / "train").is_dir()]
    for number, named in enumerate(filter(None, (together, training))):
        again = prepared(recipe(*named), tmp_path / f"again-{number}")
        assert again.artifact("examples").fingerprint == folder.artifact("examples").fingerprint


def test_without_such_files_a_share_is_held_out_whatever_the_files(
    converted: Callable[[Kind], list[Path]], recipe: Write, tmp_path: Path
) -> None:
    sources = training_alone(converted("datasets"), tmp_path)
    folder = prepared(recipe(*sources), tmp_path / "run")
    for i, (source, length) in enumerate(zip(sources, (16, 32), strict=True)):
        every = contents(source, entries_of(folder))
        taken = is_heldout(row_hashes(every.originals(), every.cu_seqlens), 0.2)
        assert 0.1 < taken.mean() < 0.3
        assert originals(held(folder, length)) == as_rows(every.take(np.flatnonzero(taken)))
        assert trained_on(folder, i) == as_rows(every.take(np.flatnonzero(~taken)))
    one = [saved(contents(source, entries_of(folder)), tmp_path / f"one-{i}") for i, source in enumerate(sources)]
    again = prepared(recipe(*one), tmp_path / "again")
    for length in (16, 32):
        assert originals(held(again, length)) == originals(held(folder, length))


def test_masks_are_undone_and_drawn_anew(
    converted: Callable[[Kind], list[Path]], recipe: Write, tmp_path: Path
) -> None:
    folder = prepared(recipe(*converted("datasets")), tmp_path / "run")
    store = Store.open(folder.artifact("examples"), "heldout")
    special = store.vocabulary
    assert not np.isin(store.tokens, (special.mask, special.cls, special.sep, special.pad)).any()
    twice = [[batch_hash(batch) for batch in held(folder, 32)] for _ in range(2)]
    assert twice[0] == twice[1] and sum(len(batch.labels) for batch in held(folder, 32)) > 0
    for batch in held(folder, 32):
        assert batch.sequence_weights.all() and set(batch.sequence_labels.tolist()) <= {0, 1}


def test_pairs_without_a_label_and_several_texts_in_one_example(
    converted: Callable[[Kind], list[Path]], recipe: Write, tmp_path: Path
) -> None:
    """Labels that are not there, or not of the plan, do not count; [SEP] inside A stays where it stands."""
    folder = prepared(recipe(*converted("datasets")), tmp_path / "run")
    every = contents(converted("datasets")[0], entries_of(folder))
    lengths = every.lengths.astype(np.int32)
    bare = Instances(
        every.originals(), every.cu_seqlens, lengths, every.positions[:0], every.labels[:0],
        0 * every.cu_predictions, every.next_sentence_labels * 0 - 1,
    )  # fmt: skip
    source = saved(bare, tmp_path / "bare", static=False)
    single = prepared(recipe(source, converted("datasets")[1]), tmp_path / "single")
    taken = is_heldout(row_hashes(bare.originals(), bare.cu_seqlens), 0.2)
    assert originals(held(single, 16)) == as_rows(bare.take(np.flatnonzero(taken)))
    plain = prepared(recipe(*converted("datasets")), tmp_path / "plain", "examples.plan=doc-sentences")
    assert all(not batch.sequence_weights.any() and batch.segment_ids.any() for batch in held(plain, 16))


def test_an_example_that_is_held_out_is_not_trained_on(
    two_phases: Path, converted: Callable[[Kind], list[Path]], recipe: Write, tmp_path: Path
) -> None:
    entries = read_vocabulary(two_phases.parent / "own" / "vocab" / "vocab.txt")
    every = contents(converted("datasets")[0], entries)
    (tmp_path / "both").mkdir()
    saved(every, tmp_path / "both" / "train")
    saved(every.take(np.arange(5)), tmp_path / "both" / "test")
    notes = Notes()
    folder = prepared(recipe(tmp_path / "both", converted("datasets")[1]), tmp_path / "run", log=notes)
    copies = as_rows(every.take(np.arange(5)))
    rest = Counter({row: n for row, n in as_rows(every).items() if row not in copies})
    assert originals(held(folder, 16)) == copies and trained_on(folder, 0) == rest
    assert any("examples with the same ids as a held-out one" in each for each in notes.said)
    facts = read_json(folder.path / "examples/imported/0/facts.json")
    assert facts["examples"] == rest.total() == len(every) - facts["repeated"]


def test_phases_of_one_length_on_the_same_files_hold_out_once(
    converted: Callable[[Kind], list[Path]], recipe: Write, tmp_path: Path
) -> None:
    first = converted("hdf5")[0]
    both = ("train.phases.1.length=16",)
    folder = prepared(recipe(first, first), tmp_path / "run", *both)
    tests = for_testing(first, "hdf5", entries_of(folder))
    assert originals(held(folder, 16)) == as_rows(tests)


def documents(two_phases: Path) -> list[list[list[int]]]:
    return nested(Store.open(RunFolder(two_phases.parent / "own").artifact("examples")))


def test_tokenised_documents_are_held_out_by_their_hash(two_phases: Path, recipe: Write, tmp_path: Path) -> None:
    texts = documents(two_phases)
    source = saved_documents(tmp_path / "megatron", texts[:40], texts[40:])
    folder = prepared(recipe(source, source), tmp_path / "run")
    examples = folder.artifact("examples")
    kept, held_out = Store.open(examples, within="imported/0/"), Store.open(examples, "heldout")
    here, there = nested(kept), nested(held_out)
    assert here and there and sorted(here + there[: len(texts) - len(here)]) == sorted(texts)
    for length in (16, 32):
        batches = held(folder, length)
        assert (
            sum(len(batch.sequence_weights) for batch in batches) == examples.counts["heldout"]["rows"][f"{length}"][0]
        )
        assert any(batch.sequence_labels.any() for batch in batches), "random partners come from other documents"
    assert examples.counts["heldout"]["phases"]["train.phases.0"]["documents"] == len(texts) - len(here)


def test_documents_for_testing_lie_in_a_folder_of_that_name(two_phases: Path, recipe: Write, tmp_path: Path) -> None:
    texts = documents(two_phases)
    (tmp_path / "texts").mkdir()
    saved_documents(tmp_path / "texts" / "train", texts[10:] + texts[:1])
    saved_documents(tmp_path / "texts" / "test", texts[:10])
    notes = Notes()
    folder = prepared(recipe(tmp_path / "texts", tmp_path / "texts"), tmp_path / "run", log=notes)
    assert nested(Store.open(folder.artifact("examples"), "heldout"))[:10] == texts[:10]
    assert any("dropped 1 documents with the same tokens as a held-out one" in each for each in notes.said)


def test_a_phase_of_examples_may_go_with_one_of_documents(
    converted: Callable[[Kind], list[Path]], two_phases: Path, recipe: Write, tmp_path: Path
) -> None:
    source = saved_documents(tmp_path / "megatron", documents(two_phases))
    folder = prepared(recipe(converted("hdf5")[0], source), tmp_path / "run")
    tests = for_testing(converted("hdf5")[0], "hdf5", entries_of(folder))
    assert originals(held(folder, 16)) == as_rows(tests)
    store, alone = (
        Store.open(made.artifact("examples"), "heldout")
        for made in (folder, prepared(recipe(source, source), tmp_path / "alone"))
    )
    texts = {tuple(map(tuple, document)) for document in nested(alone)}
    ours = [tuple(map(tuple, document)) for document in nested(store)]
    assert texts == set(ours[-len(texts) :]), "the same documents are held out, whatever else is"
    assert sum(held(folder, 32)[0].sequence_weights) > 0 and training_counts(folder.artifact("examples")).sum() > 0


def test_what_is_counted_is_the_training_text(
    converted: Callable[[Kind], list[Path]], recipe: Write, tmp_path: Path
) -> None:
    folder = prepared(recipe(*converted("tfrecord")), tmp_path / "run")
    examples, entries = folder.artifact("examples"), entries_of(folder)
    rows = [trained_on(folder, i) for i in (0, 1)]
    expected = np.zeros(len(entries), np.int64)
    for every in rows:
        for (tokens, _, _), times in every.items():
            expected += times * np.bincount(np.frombuffer(tokens, np.int64), minlength=len(entries))
    expected[[entries.index(name) for name in ("[PAD]", "[CLS]", "[SEP]", "[MASK]")]] = 0
    assert training_counts(examples).tolist() == expected.tolist()
    words = sum(int(n) for entry, n in zip(entries, expected, strict=True) if not entry.startswith("##"))
    assert examples.counts["text"]["fertility"] == pytest.approx(expected.sum() / words, abs=1e-4)
    assert examples.counts["heldout"]["unigram_loss"] > 0 and examples.counts["heldout_contamination"]["share"] <= 1


def test_ranks_share_and_a_killed_import_goes_on(
    converted: Callable[[Kind], list[Path]], recipe: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = recipe(*converted("hdf5"))
    alone = prepared(path, tmp_path / "alone").artifact("examples")
    run(Recipe.load(path), tmp_path / "shared", ["vocab"])
    for rank in (0, 1):
        run(Recipe.load(path), tmp_path / "shared", ["examples"], share=WorkSplit(rank, 2))
    read, opened = format_of("hdf5").read, list[Path]()

    def failing(file: Path, vocabulary: Any = None) -> Any:
        opened.append(file)
        if len(opened) == 3:
            raise KeyboardInterrupt
        return read(file, vocabulary)

    monkeypatch.setattr(imported_examples, "format_of", lambda kind: replace(format_of(kind), read=failing))
    with pytest.raises(KeyboardInterrupt):
        prepared(path, tmp_path / "killed")
    assert "_test_" in opened[-1].name
    prepared(path, tmp_path / "killed")
    for other in ("shared", "killed"):
        made = RunFolder(tmp_path / other).artifact("examples")
        assert made.fingerprint == alone.fingerprint
        assert {n: f["sha256"] for n, f in made.manifest["files"].items()} == {
            n: f["sha256"] for n, f in alone.manifest["files"].items()
        }


def test_files_for_testing_count_by_their_content(
    converted: Callable[[Kind], list[Path]], recipe: Write, tmp_path: Path
) -> None:
    moved = [Path(shutil.copytree(folder, tmp_path / str(i))) for i, folder in enumerate(converted("hdf5"))]
    first = prepared(recipe(*converted("hdf5")), tmp_path / "run").artifact("examples").fingerprint
    assert prepared(recipe(*moved), tmp_path / "run").artifact("examples").fingerprint == first
    next(moved[0].rglob("*_test_*")).unlink()
    notes = Notes()
    assert prepared(recipe(*moved), tmp_path / "run", log=notes).artifact("examples").fingerprint != first
    assert any("its input test data 0 is gone" in each for each in notes.said)


def test_damaged_files_for_testing_are_left_out_on_request(
    converted: Callable[[Kind], list[Path]], recipe: Write, tmp_path: Path
) -> None:
    source = Path(shutil.copytree(converted("tfrecord")[0], tmp_path / "source"))
    (whole,) = (source / "test").glob("part-*")
    (source / "test" / "part-00001-of-00002").write_bytes(whole.read_bytes()[:-9])
    path = recipe(source, converted("tfrecord")[1])
    with pytest.raises(DataError, match=r"train.phases.0.data: .*part-00001-of-00002: .*phases.0.quarantine=true"):
        prepared(path, tmp_path / "run")
    assert held(prepared(path, tmp_path / "run", "train.phases.0.quarantine=true"), 16)


def test_something_must_be_held_out(converted: Callable[[Kind], list[Path]], recipe: Write, tmp_path: Path) -> None:
    sources = training_alone(converted("datasets"), tmp_path)
    with pytest.raises(DataError) as caught:
        prepared(recipe(*sources), tmp_path / "run", "examples.heldout=1e-9")
    assert str(caught.value) == (
        "train.phases.0.data: there are no held-out examples to score length 16: the share "
        "examples.heldout=1e-09 selected none. Raise it, or put a folder named test next to the training files."
    )


def test_what_a_corpus_would_have_given_must_be_given(
    converted: Callable[[Kind], list[Path]], recipe: Write, two_phases: Path
) -> None:
    path, own = recipe(*converted("hdf5")), two_phases.parent / "own" / "examples"
    for override, sentence in {
        "train.phases.1.data=": (
            f"{path}:20: train.phases.1.data: there is no [corpus] to make examples from; give files of examples, or "
            "add a [corpus]"
        ),
        "vocab.file=": (
            "command line: vocab.file: there is no [corpus] to train a vocabulary on; set it to the vocab.txt that the "
            "data was made with, or add a [corpus]"
        ),
        f"train.phases.0.data={own}": (
            f"command line: train.phases.0.data: {own} is an examples folder made by bertwright, but there is "
            "no [corpus] with its held-out documents; add the [corpus], or give files of examples (see "
            "bertwright convert)"
        ),
    }.items():
        with pytest.raises(RecipeError) as caught:
            Recipe.load(path, [override])
        assert sentence.split(": ", 1)[1] in str(caught.value)
    with pytest.raises(
        RecipeError, match=r"texts: corpus.language and the licence .* already define it; leave the section out"
    ):
        Recipe.load(two_phases, ["texts.licence=CC0"])
    with pytest.raises(RecipeError, match=r"the recipe has no \[corpus\], so there is no corpus to make. Add a"):
        run(Recipe.load(path), path.parent / "run", ["corpus"])


def test_check_says_what_is_held_out(converted: Callable[[Kind], list[Path]], recipe: Write, tmp_path: Path) -> None:
    path = recipe(converted("hdf5")[0], training_alone(converted("datasets"), tmp_path)[1])
    verdicts = check_recipe(Recipe.load(path), tmp_path / "run", list(STAGES))
    assert not [verdict for verdict in verdicts if verdict.level == "error"]
    said = {f"{verdict.about}: {verdict.sentence}" for verdict in verdicts}
    (test,) = (file.name for file in converted("hdf5")[0].rglob("*_test_*"))
    (held,) = (sentence for sentence in said if sentence.startswith("train.phases.0.data: held out: "))
    assert "held out: 1 file for testing (" in held and held.endswith(f"{test})")
    assert "train.phases.1.data: held out: examples.heldout=0.2 of them" in said
    path = recipe(converted("hdf5")[0], converted("datasets")[1] / "train")
    said = {verdict.sentence for verdict in check_recipe(Recipe.load(path), tmp_path / "run", list(STAGES))}
    assert "held out: 1 file for testing (../test/data-00000-of-00001.arrow)" in said


def test_a_run_is_looked_at_as_any_other(
    converted: Callable[[Kind], list[Path]], recipe: Write, tmp_path: Path
) -> None:
    folder = run(Recipe.load(recipe(*converted("hdf5"))), tmp_path / "run", ["corpus", "vocab", "examples", "train"])
    assert not (folder.path / "corpus").exists() and "corpus" not in describe(folder.path)
    sealed, different = recorded_recipe(folder.path)
    assert sealed.corpus is None and not different
    with pytest.raises(RecipeError, match="has no corpus: every phase has its own data. Convert those"):
        convert(folder.path, tmp_path / "out", Target("lddl"))
