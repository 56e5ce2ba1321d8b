"""Phases that train on examples made elsewhere, as their files lie."""

import errno
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
from tests.rows import each_row
from tests.unit.examples.made import rows_of
from tests.unit.formats.samples import VOCABULARY, sample

from bertwright import Recipe, cli, run
from bertwright.check.recipe.data import imported_data
from bertwright.cli.batch_text import describe_batch
from bertwright.core.errors import ArtifactError, DataError, RecipeError
from bertwright.core.files import read_json, sha256
from bertwright.core.work_split import WorkSplit
from bertwright.examples.batch import MicroBatch, batch_hash
from bertwright.examples.config import ImportedData, MaskingConfig
from bertwright.examples.cooccurrence import read_text
from bertwright.examples.imported import ImportedExamples
from bertwright.examples.instances import Instances, concatenate
from bertwright.examples.loader import Loader
from bertwright.formats import lddl
from bertwright.formats.datasets import examples as datasets
from bertwright.formats.detect import detect
from bertwright.formats.format import Kind, Shape
from bertwright.formats.imported import examples as imported_examples
from bertwright.formats.imported.phase_files import describe_left_out, find
from bertwright.formats.known import FORMATS, format_of
from bertwright.formats.tfrecord import records
from bertwright.pipeline.run_folder import RunFolder
from bertwright.train.settings.phases import resolve_phases
from bertwright.vocab.load import read_vocabulary

pytestmark = pytest.mark.heavy

KINDS: list[Kind] = [each.kind for each in FORMATS]
LENGTHS = (16, 32)
Said = list[str]


class Notes:
    """A log that remembers sentences."""

    def __init__(self) -> None:
        self.said: Said = []

    def say(self, message: str) -> None:
        self.said.append(message)

    def progress(self, *_: Any, **__: Any) -> None: ...

    def record(self, row: dict[str, Any]) -> None: ...


def prepared(recipe: Path, out: Path, *overrides: str, log: Any = None) -> RunFolder:
    """A run whose corpus and vocabulary are those of `two_phases`, up to the stage `examples`."""
    out.mkdir(exist_ok=True)
    for stage in ("corpus", "vocab"):
        if not (out / stage).exists():
            shutil.copytree(recipe.parent / "own" / stage, out / stage)
    return run(Recipe.load(recipe, overrides), out, ["examples"], log=log or Notes())


def data(folders: list[Path]) -> list[str]:
    return [f"train.phases.{i}.data={folder}" for i, folder in enumerate(folders)]


def loaders_of(folder: RunFolder, *changes: str) -> list[Loader]:
    recipe = Recipe.load(folder.path / "recipe.toml", changes)
    phases = resolve_phases(recipe.train, folder.artifact("examples"), folder.artifact("vocab"))
    found = [phase.loader for phase in phases]
    assert all(isinstance(each.examples, ImportedExamples) for each in found)
    return found


def contents(folder: Path, entries: list[str]) -> Instances:
    (found,) = (each for each in detect(folder) if each.trains)
    return concatenate([block for file in found.files for block in format_of(found.kind).read(file, entries)])


def as_rows(every: Instances) -> Counter[Any]:
    """In the form of `made.rows_of`."""
    singles = [every.take(np.array([i])) for i in range(len(every))]
    columns = ("token_ids", "positions", "labels")
    return Counter(
        (*(getattr(one, c).astype(np.int64).tobytes() for c in columns), max(0, int(one.next_sentence_labels[0])))
        for one in singles
    )


def as_drawn(batches: list[MicroBatch]) -> Counter[Any]:
    return Counter(row for batch in batches for row in rows_of(batch))


@each_row("kind", KINDS)
def test_an_epoch_holds_every_example_of_the_files(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path, kind: Kind
) -> None:
    folder = prepared(two_phases, tmp_path / "run", *data(converted(kind)))
    entries = read_vocabulary(folder.path / "vocab" / "vocab.txt")
    for index, (loader, source) in enumerate(zip(loaders_of(folder), converted(kind), strict=True)):
        every = contents(source, entries)
        (size,) = loader.examples.sizes
        facts = read_json(folder.path / "examples" / f"imported/{index}/facts.json")
        assert size == len(every) == facts["examples"] and facts["length"] == LENGTHS[index]
        assert loader.examples.mean_tokens == pytest.approx(every.lengths.mean())
        whole = loaders_of(folder, f"train.phases.{index}.batch={size}")[index]
        first, second = whole.step(0), whole.step(1)
        assert as_drawn(first) == as_drawn(second) == as_rows(every)
        text = read_text(whole, 10**9)
        parts = np.split(text.ids_T, np.flatnonzero(np.diff(text.sequence_T)) + 1)
        originals = np.split(every.originals(), every.cu_seqlens[1:-1])
        assert Counter(part.tobytes() for part in parts) == Counter(part.tobytes() for part in originals)
        orders = [step[0].token_ids.tolist() for step in (first, second)]
        assert orders[0] != orders[1], "each epoch has an order of its own"
        steps = [loader.step(step) for step in range(3)]
        assert as_drawn([batch for step in steps for batch in step]) <= as_rows(every)
        resumed = loaders_of(folder)[index].step(2)
        assert [batch_hash(batch) for batch in resumed] == [batch_hash(batch) for batch in steps[2]]
        for batch in first:
            assert 0 < batch.segment_ids.mean() < 1 and batch.sequence_weights.all()


@each_row("cut", [[], ["train.phases.0.packing=true"], ["train.phases.0.micro_tokens=40"]])
def test_any_ranks_and_any_cut_see_the_same_examples(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path, cut: list[str]
) -> None:
    folder = prepared(two_phases, tmp_path / "run", *data(converted("datasets")))
    plain = loaders_of(folder)[0]
    changes = [*cut, *(["train.phases.0.micro_batch=0"] if cut else [])]
    loader = loaders_of(folder, *changes)[0]
    for step in (0, 5):
        expected = as_drawn(plain.step(step))
        assert expected.total() == 8
        for world in (1, 2, 3):
            parts = [loader.step(step, rank, world) for rank in range(world)]
            assert len({len(part) for part in parts}) == 1
            assert as_drawn([batch for part in parts for batch in part]) == expected
            for rank, part in enumerate(parts):
                counts = (
                    sum(batch.counts.predictions for batch in part),
                    sum(int(batch.sequence_weights.sum()) for batch in part),
                    sum(batch.counts.tokens for batch in part),
                )
                assert loader.counts(step, rank, world)[:3] == counts


def test_batches_that_grow_take_the_examples_one_after_the_other(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path
) -> None:
    folder = prepared(two_phases, tmp_path / "run", *data(converted("datasets")))
    plain = loaders_of(folder)[0]
    growth = "train.phases.0.batch_warmup=[[0, 2], [3, 5], [5, 8]]"
    growing = loaders_of(folder, growth, "train.phases.0.steps=6")[0]
    sizes = [sum(batch.counts.sequences for batch in growing.step(step)) for step in range(6)]
    assert sizes == [2, 2, 2, 5, 5, 8]
    for together, alike in ((range(5), range(2)), (range(5, 8), range(2, 5))):
        grown = sum((as_drawn(growing.step(step, rank, 2)) for step in together for rank in range(2)), Counter())
        assert grown == sum((as_drawn(plain.step(step)) for step in alike), Counter())


def without_masks(source: Path, target: Path, entries: list[str], labelled: bool = True) -> Path:
    every = contents(source, entries)
    bare = Instances(
        every.originals(), every.cu_seqlens, every.second, every.positions[:0], every.labels[:0],
        0 * every.cu_predictions, every.next_sentence_labels if labelled else every.next_sentence_labels * 0 - 1,
    )  # fmt: skip
    return saved(bare, target, static=False)


def saved(every: Instances, folder: Path, static: bool = True) -> Path:
    folder.mkdir()
    datasets.write(folder / "data-00000-of-00001.arrow", iter([every]), Shape(None, None, static))
    return folder


def test_examples_without_masks_are_masked_anew(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path
) -> None:
    entries = read_vocabulary(two_phases.parent / "own" / "vocab" / "vocab.txt")
    bare = without_masks(converted("datasets")[0], tmp_path / "bare", entries, labelled=False)
    notes = Notes()
    folder = prepared(two_phases, tmp_path / "run", *data([bare, converted("datasets")[1]]), log=notes)
    assert any("have no next-sentence label and are used only for masked words" in each for each in notes.said)
    loader, original = loaders_of(folder)[0], contents(converted("datasets")[0], entries).originals()
    (size,) = loader.examples.sizes
    first, again = loader.step(0), loaders_of(folder)[0].step(0)
    assert [batch_hash(batch) for batch in first] == [batch_hash(batch) for batch in again]
    for batch in first:
        restored = batch.token_ids.copy()
        restored[batch.prediction_positions] = batch.labels
        spans = [restored[a:b].astype(np.int32).tobytes() for a, b in pairwise(batch.cu_seqlens)]
        assert all(span in original.tobytes() for span in spans)
        assert not batch.sequence_weights.any() and not set(batch.labels.tolist()) & {
            entries.index("[CLS]"),
            entries.index("[SEP]"),
        }
        lengths = np.diff(batch.cu_seqlens)
        expected = np.minimum(np.maximum(1, np.rint(lengths * 0.15)), MaskingConfig().most(16)).sum()
        assert len(batch.labels) == expected
    whole = loaders_of(folder, f"train.phases.0.batch={size}", "train.phases.0.micro_batch=0")[0]
    assert len(as_drawn(whole.step(0)) & as_drawn(whole.step(1))) < 0.5 * size, "masks are fresh in the next epoch"
    static = loaders_of(
        folder, f"train.phases.0.batch={size}", "train.phases.0.micro_batch=0", "train.phases.0.masking.static=true"
    )[0]
    assert as_drawn(static.step(0)) == as_drawn(static.step(1))
    words = loaders_of(folder, "train.phases.0.masking.unit=words")[0]
    assert words.counts(1)[0] == sum(batch.counts.predictions for batch in words.step(1))


@each_row("plan", ["sentence-order", "next-sentence"])
def test_labels_trained_on_as_order_are_logged_once(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path, plan: str
) -> None:
    notes = Notes()
    prepared(two_phases, tmp_path / "run", *data(converted("lddl")), f"examples.plan={plan}", log=notes)
    said = [each for each in notes.said if "are next-sentence labels in this format" in each]
    assert len(said) == (plan == "sentence-order")
    for each in said:
        assert "train.phases.0.data, train.phases.1.data" in each and "examples.plan=next-sentence" in each


def intel(two_phases: Path, converted: Callable[[Kind], list[Path]], target: Path) -> Path:
    """Both phases in Intel's layout, under one folder."""
    for source, length in zip(converted("tfrecord"), LENGTHS, strict=True):
        (target / f"seq_{length}").mkdir(parents=True)
        for number, file in enumerate(sorted(source.glob("train/part-*"))):
            shutil.copy(file, target / f"seq_{length}" / f"part-{number:05}-of-00500_{length}")
    return target


def test_the_command_line_trains_both_phases_on_intels_folder(
    two_phases: Path,
    converted: Callable[[Kind], list[Path]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = intel(two_phases, converted, tmp_path / "intel")
    options = [f"train.phases.{i}.data={source}" for i in (0, 1)]
    arguments = [str(two_phases), *options, "--out", str(tmp_path / "run"), "--until", "train"]
    monkeypatch.setattr(sys, "argv", ["bertwright", "run", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    printed = " ".join("".join(capsys.readouterr()).split())
    assert end.value.code == 0, printed
    assert "train.phases.1.data is incomplete: 2 of 500 parts were found" in printed
    assert printed.count("held out here; this cannot be checked") == 1
    folder = RunFolder(tmp_path / "run")
    assert folder.artifact("train").counts["steps"] == 5
    batch = describe_batch(folder.path, 1, 1)
    assert batch["sequences"] == 8 and "[MASK=" in str(batch)
    shutil.rmtree(source)
    recipe, before = Recipe.load(folder.path / "recipe.toml", given=False), folder.artifact("train").fingerprint
    assert run(recipe, folder.path, ["train"]).artifact("train").fingerprint == before, "the files are not needed again"


def test_the_files_are_known_by_their_content(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path
) -> None:
    moved = [Path(shutil.copytree(folder, tmp_path / str(i))) for i, folder in enumerate(converted("lddl"))]
    first = prepared(two_phases, tmp_path / "run", *data(converted("lddl"))).artifact("examples").fingerprint
    assert prepared(two_phases, tmp_path / "run", *data(moved)).artifact("examples").fingerprint == first
    sorted(moved[0].glob("train/*.parquet"))[0].unlink()
    notes = Notes()
    assert prepared(two_phases, tmp_path / "run", *data(moved), log=notes).artifact("examples").fingerprint != first
    assert any("its input data 0 changed" in each for each in notes.said)


def test_the_hash_of_each_file_is_kept(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path
) -> None:
    folder = prepared(two_phases, tmp_path / "run", *data(converted("hdf5")))
    for index, source in enumerate(converted("hdf5")):
        facts = read_json(folder.path / "examples" / f"imported/{index}/facts.json")
        found = {each["file"]: each["sha256"] for each in facts["files"]}
        assert found == {file.name: sha256(file) for file in source.rglob("*_training_*")} and len(found) == 2


def test_killed_import_resumes(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = data(converted("hdf5"))
    whole = prepared(two_phases, tmp_path / "whole", *options)
    read = format_of("hdf5").read
    opened: list[Path] = []

    def failing(file: Path, vocabulary: Any = None) -> Any:
        opened.append(file)
        if len(opened) == 3:
            raise KeyboardInterrupt
        return read(file, vocabulary)

    monkeypatch.setattr(imported_examples, "format_of", lambda kind: replace(format_of(kind), read=failing))
    with pytest.raises(KeyboardInterrupt):
        prepared(two_phases, tmp_path / "run", *options)
    again = prepared(two_phases, tmp_path / "run", *options)
    assert len(opened) == 5 and opened.count(opened[0]) == 1 and opened.count(opened[2]) == 2
    files = {name: entry["sha256"] for name, entry in whole.artifact("examples").manifest["files"].items()}
    assert {name: entry["sha256"] for name, entry in again.artifact("examples").manifest["files"].items()} == files


def test_ranks_share_the_files(two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path) -> None:
    options = data(converted("lddl"))
    alone = prepared(two_phases, tmp_path / "alone", *options).artifact("examples")
    out = tmp_path / "shared"
    shutil.copytree(two_phases.parent / "own", out, ignore=shutil.ignore_patterns("examples"))
    for rank in (0, 1):
        assert not (out / "examples").exists()
        run(Recipe.load(two_phases, options), out, ["examples"], share=WorkSplit(rank, 2))
    shared = RunFolder(out).artifact("examples")
    assert shared.fingerprint == alone.fingerprint
    hashes = [{name: file["sha256"] for name, file in each.manifest["files"].items()} for each in (alone, shared)]
    assert hashes[0] == hashes[1]


def test_damaged_files_are_skipped_only_on_request(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path
) -> None:
    source = Path(shutil.copytree(converted("tfrecord")[0], tmp_path / "damaged"))
    broken = sorted(source.glob("train/part-*"))[1]
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-7])
    options = data([source, converted("tfrecord")[1]])
    key = r"train.phases.0.quarantine=true"
    with pytest.raises(DataError, match=rf"train.phases.0.data: .*{broken.name}: .* set {key} to skip damaged files"):
        prepared(two_phases, tmp_path / "run", *options)
    notes = Notes()
    folder = prepared(two_phases, tmp_path / "run", *options, key, log=notes)
    assert any(f"skipped {broken.name}" in each for each in notes.said)
    facts = read_json(folder.path / "examples/imported/0/facts.json")
    assert [each["file"] for each in facts["quarantined"]] == [broken.name] and len(facts["files"]) == 1
    assert loaders_of(folder)[0].examples.sizes == [facts["examples"]]
    broken.write_bytes(b"")
    with pytest.raises(DataError, match=rf"{broken.name}: it is empty. .*{key}"):
        prepared(two_phases, tmp_path / "other", *options)
    for file in source.glob("train/part-*"):
        file.write_bytes(whole[:-7])
    with pytest.raises(DataError, match=r"train.phases.0.data: there is no example to train on in .* is cut off"):
        prepared(two_phases, tmp_path / "other", *options, key)


def test_a_disk_that_fails_leaves_no_file_out(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `quarantine` a whole file was left out for good, because the disk had failed once."""
    source = converted("tfrecord")[0]
    failing, whole = sorted(source.glob("train/part-*"))[1], records.open_records

    def opened(file: Path) -> BinaryIO:
        if file == failing:
            raise OSError(errno.ESTALE, "Stale file handle")
        return whole(file)

    options = [*data([source, converted("tfrecord")[1]]), "train.phases.0.quarantine=true"]
    with monkeypatch.context() as patch:
        patch.setattr(records, "open_records", opened)
        with pytest.raises(DataError, match=rf"{failing.name}: Stale file handle. Check the disk"):
            prepared(two_phases, tmp_path / "run", *options)
    facts = read_json(prepared(two_phases, tmp_path / "run", *options).path / "examples/imported/0/facts.json")
    assert facts["quarantined"] == [] and failing.name in [each["file"] for each in facts["files"]]


def test_other_vocabulary_is_detected_by_special_tokens(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path
) -> None:
    entries = read_vocabulary(two_phases.parent / "own" / "vocab" / "vocab.txt")
    every = contents(converted("datasets")[0], entries)

    def swapped(one: str, other: str, where: str) -> Path:
        a, b = entries.index(one), entries.index(other)
        tokens = every.token_ids.copy()
        tokens[every.token_ids == a], tokens[every.token_ids == b] = b, a
        return saved(Instances(**{**vars(every), "token_ids": tokens}), tmp_path / where)

    with pytest.raises(
        DataError, match=r"has id 9999, but the vocabulary has \d+ entries. The examples were made with another vocab"
    ):
        changed = Instances(
            **{
                **vars(every),
                "token_ids": np.where(every.token_ids == every.token_ids[1], 9999, every.token_ids).astype(np.int32),
            }
        )
        prepared(two_phases, tmp_path / "run", *data([saved(changed, tmp_path / "large"), converted("datasets")[1]]))
    cases = [
        ("[CLS]", r"example 0 begins with id \d+, not \[CLS\] \(\d+\)"),
        ("[SEP]", r"example 0 ends with id \d+, not \[SEP\] \(\d+\)"),
        ("[MASK]", r"id \d+ is at most predicted positions, not \[MASK\] \(\d+\)"),
    ]
    for number, (special, message) in enumerate(cases):
        folder = swapped(special, "[UNK]", f"case{number}")
        with pytest.raises(
            DataError, match=rf"train.phases.0.data: .*{message}. The examples were made with another vocab"
        ):
            prepared(two_phases, tmp_path / "run", *data([folder, converted("datasets")[1]]))


def test_files_with_and_without_masks_are_not_one_set(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path
) -> None:
    entries = read_vocabulary(two_phases.parent / "own" / "vocab" / "vocab.txt")
    mixed = without_masks(converted("datasets")[0], tmp_path / "mixed", entries)
    masked = saved(contents(converted("datasets")[0], entries), tmp_path / "masked")
    shutil.copy(masked / "data-00000-of-00001.arrow", mixed / "data-00001-of-00001.arrow")
    with pytest.raises(
        DataError, match=r"example 0 and those after it have masks, but the first file of the set has none"
    ):
        prepared(two_phases, tmp_path / "run", *data([mixed, converted("datasets")[1]]))


HUB = [*(f"train-0000{n}-of-00002" for n in range(2)), "test-00000-of-00001", "validation-00000-of-00001"]


def test_files_of_the_hub_that_are_not_trained_on_are_named(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path
) -> None:
    entries = read_vocabulary(two_phases.parent / "own" / "vocab" / "vocab.txt")
    first, second = converted("lddl")
    every, hub = contents(first, entries), tmp_path / "hub"
    hub.mkdir()
    for number, name in enumerate(HUB):
        rows = every.take(slice(number, len(every), len(HUB)))
        lddl.write(hub / f"{name}.parquet", iter([rows]), Shape(None, None, static=True), entries)
    names = "2 files for testing (test-00000-of-00001.parquet, validation-00000-of-00001.parquet)"
    recipe = Recipe.load(two_phases, data([hub, second]))
    said = [f"{verdict.about}: {verdict.text}" for verdict in imported_data(recipe)]
    assert f"train.phases.0.data: not trained on: {names}" in said
    notes = Notes()
    prepared(two_phases, tmp_path / "run", *data([hub, second]), log=notes)
    assert f"examples: train.phases.0.data: not trained on: {names}" in notes.said


def test_of_many_files_that_are_not_trained_on_some_are_named(tmp_path: Path) -> None:
    for name in ("train-00000-of-00001", *(f"test-{n:05}-of-00012" for n in range(12))):
        lddl.write(tmp_path / f"{name}.parquet", iter([sample(3)]), Shape(32, 5, static=True), VOCABULARY)
    phase = ImportedData(0, tmp_path, 32, MaskingConfig(), False, None)
    sentence = describe_left_out(phase, find(phase))
    assert "12 files for testing (test-00000-of-00012.parquet, " in sentence
    assert sentence.endswith("test-00009-of-00012.parquet and 2 more)")


def without_predictions(every: Instances) -> Instances:
    """The same examples, none of which has a prediction."""
    none = every.positions[:0], every.labels[:0], 0 * every.cu_predictions
    return Instances(every.originals(), every.cu_seqlens, every.second, *none, every.next_sentence_labels)


@each_row("bare", [0, 1])
def test_a_block_without_predictions_is_legal_among_others(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path, bare: int
) -> None:
    first, second = converted("datasets")
    entries = read_vocabulary(two_phases.parent / "own" / "vocab" / "vocab.txt")
    every = contents(first, entries)
    half = len(every) // 2
    blocks = [every.take(slice(0, half)), every.take(slice(half, len(every)))]
    blocks[bare] = without_predictions(blocks[bare])
    target = tmp_path / "some"
    target.mkdir()
    datasets.write(target / "data-00000-of-00001.arrow", iter(blocks), Shape(None, None, static=True))
    folder = prepared(two_phases, tmp_path / "run", *data([target, second]))
    facts = read_json(folder.path / "examples" / "imported/0/facts.json")
    assert (facts["examples"], facts["predictions"]) == (len(every), len(blocks[1 - bare].labels)) and facts["static"]
    whole = loaders_of(folder, f"train.phases.0.batch={len(every)}")[0]
    assert as_drawn(whole.step(0)) == as_rows(concatenate(blocks))


def test_file_without_predictions_is_refused(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path
) -> None:
    first, second = converted("datasets")
    entries = read_vocabulary(two_phases.parent / "own" / "vocab" / "vocab.txt")
    target = tmp_path / "none"
    target.mkdir()
    blocks = [without_predictions(contents(first, entries))] * 2
    file = target / "data-00000-of-00001.arrow"
    datasets.write(file, iter(blocks), Shape(None, None, static=True))
    number = f"{sum(map(len, blocks)):,}"
    with pytest.raises(DataError, match=rf"{file}: none of its {number} examples has a prediction.*folders of their"):
        prepared(two_phases, tmp_path / "run", *data([target, second]))


def test_which_files_a_phase_trains_on(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path
) -> None:
    def refused(kind: type[Exception], message: str, *options: str) -> None:
        with pytest.raises(kind, match=message):
            prepared(two_phases, tmp_path / "run", *options)

    lddl, tfrecord = converted("lddl"), converted("tfrecord")
    for name in ("one", "other"):
        (tmp_path / "foreign").mkdir(exist_ok=True)
        saved(sample(3), tmp_path / "foreign" / name)
    refused(
        RecipeError,
        r"data: .* has 2 training sets for train.phases.0.length=16; .*foreign/one \(datasets, length not stated\)",
        f"train.phases.0.data={tmp_path / 'foreign'}",
    )
    refused(
        RecipeError,
        r"no training set for train.phases.0.length=16; .*seq_32/train \(lddl, length 32\)",
        f"train.phases.0.data={lddl[1]}",
    )
    refused(
        RecipeError,
        r"no training set for train.phases.0.length=16; .*seq_32/test \(tfrecord, length 32, not for training\)",
        f"train.phases.0.data={tfrecord[1]}",
    )
    refused(
        DataError,
        r"example \d+ has \d+ tokens, more than train.phases.0.length=16. Set the length",
        f"train.phases.0.data={saved(sample(9, length=32), tmp_path / 'unstated')}",
    )
    refused(
        RecipeError,
        r"train.phases.1.masking: the examples in .* already have masks",
        f"train.phases.1.data={tfrecord[1]}",
        "train.phases.1.masking.rate=0.2",
    )
    refused(
        RecipeError, r"train.phases.0.data: .*nowhere does not exist", f"train.phases.0.data={tmp_path / 'nowhere'}"
    )
    refused(
        RecipeError,
        r"train.phases.0.document_range: .* is a share of documents",
        f"train.phases.0.data={tfrecord[0]}",
        "train.phases.0.document_range=[0.0, 0.5]",
    )
    refused(RecipeError, "quarantine applies to the files of data", "train.phases.0.quarantine=true")
    refused(
        RecipeError,
        r"train.phases.0.quarantine: .* is an examples folder",
        f"train.phases.0.data={two_phases.parent / 'own' / 'examples'}",
        "train.phases.0.quarantine=true",
    )


def test_training_needs_what_was_brought_in(
    two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path
) -> None:
    own = RunFolder(two_phases.parent / "own")
    recipe = Recipe.load(two_phases, data(converted("hdf5")))
    with pytest.raises(ArtifactError, match=r"train.phases.0.data: .* contains nothing made from it"):
        resolve_phases(recipe.train, own.artifact("examples"), own.artifact("vocab"))
