"""Ids of special tokens where only text should be: counted, named, never predicted, and no end of a run."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.rows import each_row
from tests.unit.conftest import MODEL
from tests.unit.formats.samples import CLS, MASK, PAD, SEP, sample
from tests.unit.formats.test_imported_data import KINDS, Notes

from bertwright import Recipe, run
from bertwright.check.recipe.data import imported_data
from bertwright.core.files import read_json
from bertwright.examples.instances import Instances, concatenate, ends
from bertwright.examples.planned import heldout_batches
from bertwright.formats.detect import detect
from bertwright.formats.format import Kind, Shape
from bertwright.formats.known import format_of
from bertwright.formats.statistics import statistics
from bertwright.formats.vocabulary_fit import ENTRIES, Misplaced, without_special_labels
from bertwright.train.settings.phases import resolve_phases
from bertwright.vocab.load import read_vocabulary

SPECIAL = (PAD, CLS, SEP, MASK)
RECIPE = """
[vocab]
file = {vocab}

[examples]
workers = 1

[model]
config = {model}

[[train.phases]]
length = 16
batch = 8
learning_rate = 1e-3
steps = 3
data = {data}

[train]
device = "cpu"

[evaluate]
samples = 64
"""


def example(ids: list[int], second: int, predictions: dict[int, int] | None = None) -> Instances:
    predictions = predictions or {}
    return Instances(
        np.array(ids, np.int32),
        ends([len(ids)]),
        np.array([second], np.int32),
        np.array(list(predictions), np.int32),
        np.array(list(predictions.values()), np.int32),
        ends([len(predictions)]),
        np.array([0], np.int8),
    )


@each_row(
    ("found", "inside", "labels"),
    [
        (example([CLS, 7, SEP, 8, SEP], 3), {}, {}),
        (example([CLS, 7, SEP, 8, SEP], 5), {}, {}),  # one segment of two documents
        (example([CLS, 7, SEP, SEP, 8, SEP], 6), {"[SEP]": 2}, {}),
        (example([CLS, 7, SEP, 9, SEP, 8, SEP], 5), {"[SEP]": 1}, {}),  # inside A, but B follows
        (example([CLS, 7, SEP, 8, SEP, 9, SEP], 3), {"[SEP]": 1}, {}),  # inside B
        (example([CLS, PAD, CLS, MASK, SEP], 5), {"[PAD]": 1, "[CLS]": 1, "[MASK]": 1}, {}),
        (example([CLS, MASK, MASK, 8, SEP], 5, {1: 7}), {"[MASK]": 1}, {}),  # the first is only how 7 is shown
        (example([CLS, MASK, 9, 8, SEP], 5, {1: MASK, 2: PAD, 3: 8}), {}, {"[PAD]": 1, "[MASK]": 1}),
    ],
)
def test_misplaced_ids_are_counted_by_entry(found: Instances, inside: dict[str, int], labels: dict[str, int]) -> None:
    counted = Misplaced(SPECIAL)
    for _ in range(2):
        counted.add(found)
    assert counted.inside == {entry: 2 * count for entry, count in inside.items()}
    assert counted.labels == {entry: 2 * count for entry, count in labels.items()}


def test_a_prediction_of_a_special_id_becomes_text_again() -> None:
    one, other = sample(50, seed=1), example([CLS, MASK, 9, 8, SEP], 5, {1: MASK, 2: PAD, 3: 8})
    both = concatenate([one, other, one])
    kept = without_special_labels(both, SPECIAL)
    assert kept.originals().tolist() == both.originals().tolist()
    assert kept.labels.tolist() == [*one.labels, 8, *one.labels]
    assert np.diff(kept.cu_predictions).tolist() == [*np.diff(one.cu_predictions), 1, *np.diff(one.cu_predictions)]
    assert kept.take(np.array([50])).token_ids.tolist() == [CLS, MASK, PAD, 8, SEP]
    assert without_special_labels(one, SPECIAL) is one


def spoiled(every: Instances, special: list[int]) -> Instances:
    """The examples with special ids at some places of their text, and as some labels."""
    tokens, labels = every.token_ids.copy(), every.labels.copy()
    inner = np.setdiff1d(np.flatnonzero(~np.isin(tokens, special)), every.predicted)
    tokens[inner[::5]] = np.resize(special, len(inner[::5]))
    labels[::6] = np.resize(special, len(labels[::6]))
    return replace(every, token_ids=tokens, labels=labels)


@pytest.fixture
def recipe(two_phases: Path, converted: Callable[[Kind], list[Path]], tmp_path: Path) -> Callable[[Kind], Path]:
    """`recipe(kind)`: a recipe whose data, in that format, has special ids inside."""

    def write(kind: Kind) -> Path:
        vocab = two_phases.parent / "own" / "vocab" / "vocab.txt"
        entries = read_vocabulary(vocab)
        special = [entries.index(entry) for entry in ENTRIES]
        for found in detect(converted(kind)[0]):
            for file in found.files:
                target, known = tmp_path / "data" / file.relative_to(converted(kind)[0]), format_of(kind)
                target.parent.mkdir(parents=True, exist_ok=True)
                every = concatenate(list(known.read(file, entries)))
                known.write(target, iter([spoiled(every, special)]), found.shape, entries)
        for folder in (file.parent for file in (tmp_path / "data").rglob("*.arrow")):
            format_of(kind).describe(folder.parent)  # type: ignore[misc]
        (tmp_path / "bert.json").write_text(json.dumps(MODEL))
        values = {"vocab": vocab, "model": tmp_path / "bert.json", "data": tmp_path / "data"}
        path = tmp_path / "special.toml"
        path.write_text(RECIPE.format(**{name: json.dumps(str(value)) for name, value in values.items()}))
        return path

    return write


@pytest.mark.parametrize("kind", KINDS)
def test_special_ids_are_named_and_never_predicted(recipe: Callable[[Kind], Path], tmp_path: Path, kind: Kind) -> None:
    path, notes = recipe(kind), Notes()
    loaded = Recipe.load(path)
    assert loaded.vocab.file
    entries = read_vocabulary(loaded.vocab.file)
    special = [entries.index(entry) for entry in ENTRIES]
    for found in statistics(tmp_path / "data", entries)["sets"]:
        assert set(found["special_inside"]) == set(found["special_labels"]) == set(ENTRIES)
        inside, labels = found["faults"][-2:]
        assert inside.startswith("special ids occur inside the text of examples") and "[MASK] " in inside
        assert labels.startswith("special ids are the labels of predictions") and "[PAD] " in labels
    warned = [verdict.text for verdict in imported_data(loaded, entries) if verdict.level == "warning"]
    assert len(warned) == 2 and all("[MASK]" in text for text in warned)
    folder = run(loaded, tmp_path / "run", ["vocab", "examples"], log=notes)
    # By the check at the start, from some of the examples, and by the stage, from all.
    assert sum("special ids" in each for each in notes.said) == 4
    examples = folder.artifact("examples")
    facts = read_json(examples.path / "imported/0/facts.json")
    assert set(facts["special_inside"]) == set(facts["special_labels"]) == set(ENTRIES)
    (phase,) = resolve_phases(loaded.train, examples, folder.artifact("vocab"))
    trained = [batch for step in range(3) for batch in phase.loader.step(step)]
    scored = list(heldout_batches(examples, 16, 16, 0.15, 8))
    assert np.isin(np.concatenate([batch.token_ids for batch in trained]), special[:1]).any()
    for batches in (trained, scored):
        labels = np.concatenate([batch.labels for batch in batches])
        assert len(labels) and not np.isin(labels, special).any()


def test_examples_without_masks_get_none_on_special_ids(two_phases: Path, tmp_path: Path) -> None:
    """As in transformers' collator: `get_special_tokens_mask` has all of them."""
    vocab = two_phases.parent / "own" / "vocab" / "vocab.txt"
    entries = read_vocabulary(vocab)
    special = [entries.index(entry) for entry in ENTRIES]
    every = sample(200, 16, masks=False)
    renamed = every.token_ids.copy()
    for own, theirs in zip(SPECIAL, special, strict=True):
        renamed[every.token_ids == own] = theirs
    words = every.token_ids > MASK
    renamed[words] = max(special) + 1 + every.token_ids[words] % (len(entries) - max(special) - 1)
    data, spoilt = tmp_path / "data", spoiled(replace(every, token_ids=renamed), special)
    data.mkdir()
    format_of("lddl").write(data / "part.0.parquet", iter([spoilt]), Shape(None, None, static=False), entries)
    (tmp_path / "bert.json").write_text(json.dumps(MODEL))
    path = tmp_path / "recipe.toml"
    values = {"vocab": vocab, "model": tmp_path / "bert.json", "data": data}
    path.write_text(RECIPE.format(**{name: json.dumps(str(value)) for name, value in values.items()}))
    for unit in ("tokens", "words"):
        loaded = Recipe.load(path, [f"train.phases.0.masking.unit={unit}", "examples.heldout=0.1"])
        folder = run(loaded, tmp_path / "run", ["vocab", "examples"], log=Notes())
        (phase,) = resolve_phases(loaded.train, folder.artifact("examples"), folder.artifact("vocab"))
        for step in range(3):
            batches = phase.loader.step(step)
            predicted = sum(len(batch.labels) for batch in batches)
            assert predicted == phase.loader.counts(step).predictions
            assert not any(np.isin(batch.labels, special).any() for batch in batches)


def test_the_whole_road_is_walked(recipe: Callable[[Kind], Path], tmp_path: Path) -> None:
    folder = run(Recipe.load(recipe("hdf5")), tmp_path / "run", log=Notes())
    shown = read_json(folder.path / "evaluate" / "predictions.json")
    assert len(shown) > 8 and all(each["text"].count("[MASK]") == 1 for each in shown)
    assert (folder.path / "export" / "hf" / "model.safetensors").is_file()
