"""A classifier's forecast: its texts are counted before there are examples, its memory is that of classes."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.rows import each_row
from tests.unit.test_classification import recipe, texts

from bertwright import Recipe, run
from bertwright.estimate.known_data import read_data
from bertwright.estimate.work import phase_work
from bertwright.examples.labelled.sizes import TextSizes
from bertwright.pipeline.lineage import matching_artifacts
from bertwright.train.memory.kept_numbers import Pass, pass_numbers, scoring_bytes

LABELS = 'labels = ["poor", "fine"]'


def test_texts_are_counted_before_the_examples_exist(tmp_path: Path) -> None:
    wanted = recipe(tmp_path, LABELS, texts())
    before = read_data(wanted, {})
    assert before.imported[0].per_pass == (36,) and before.heldout == {"16": 12} and before.basis == "sources"
    work = phase_work(wanted, 0, before)
    assert work.steps == 54 and work.epochs == pytest.approx(12)
    run(wanted, tmp_path / "run", stages=("vocab", "examples"))
    after = read_data(wanted, matching_artifacts(wanted, tmp_path / "run"))
    assert (after.imported[0].per_pass, after.heldout) == (before.imported[0].per_pass, before.heldout)
    assert phase_work(wanted, 0, after).steps == work.steps


def test_a_part_that_was_read_stands_for_its_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large file of short texts ten are parsed, of a small file of long texts all three."""
    monkeypatch.setattr("bertwright.examples.labelled.sizes.SAMPLE", 10)
    recipe(tmp_path, LABELS, texts())
    for name, text, number in (("train-0", "a" * 15, 97), ("train-1", "a" * 45, 3)):
        line = json.dumps({"text": text, "label": 0})
        (tmp_path / "data" / f"{name}.jsonl").write_text(f"{line}\n" * number)
    (tmp_path / "data" / "train.jsonl").unlink()
    found = read_data(Recipe.load(tmp_path / "recipe.toml"), {}).imported[0]
    # Five bytes a token, [CLS] and [SEP]: 5 and 11 tokens.
    assert found.per_pass == (100,) and found.mean_length == pytest.approx(0.97 * 5 + 0.03 * 11)
    assert found.deviation == pytest.approx(6 * math.sqrt(0.97 * 0.03))


@each_row(
    ("longest", "tokens"),
    [((23, 9), 8), ((23, 25), 9), ((23, 900), 16), ((23, None), 16)],
)
def test_the_longest_text_is_bounded_by_its_bytes_and_the_phase(
    longest: tuple[int | None, ...], tokens: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two files; with [CLS] and [SEP], 23 bytes are 7.75 tokens."""
    wanted = recipe(tmp_path, LABELS, texts())
    (tmp_path / "data" / "train-1.jsonl").touch()
    found = iter([*longest, 5])
    monkeypatch.setattr(
        "bertwright.examples.labelled.sizes.text_sizes", lambda file, texts: TextSizes(9, np.array([5, 6]), next(found))
    )
    assert read_data(wanted, {}).imported[0].longest == tokens


def test_a_share_that_is_held_out_is_reckoned_with(tmp_path: Path) -> None:
    recipe(tmp_path, LABELS, texts())
    (tmp_path / "data" / "dev.jsonl").unlink()
    data = read_data(Recipe.load(tmp_path / "recipe.toml", ["examples.heldout=0.25"]), {})
    assert data.imported[0].per_pass == (27,) and data.heldout == {"16": 9}


def test_files_that_are_not_there_are_not_known(tmp_path: Path) -> None:
    recipe(tmp_path, LABELS, texts())
    data = read_data(Recipe.load(tmp_path / "recipe.toml", ["train.phases.0.data=/nowhere"]), {})
    assert (data.imported, data.heldout, data.basis) == ({}, {}, "nothing")


def test_a_classifier_keeps_logits_of_classes_only(tmp_path: Path) -> None:
    wanted = recipe(tmp_path, LABELS, texts())
    network, phase, read = wanted.network(), wanted.train.phases[0], Pass.full(8, 16)
    larger = network.model_copy(update={"vocab_size": 1000 * network.vocab_size})
    assert pass_numbers(larger, phase, read, True, False) == pass_numbers(network, phase, read, True, False)
    assert scoring_bytes(larger, phase, read) == scoring_bytes(network, phase, read)
    more = network.model_copy(update={"labels": tuple(map(str, range(102)))})
    difference = pass_numbers(more, phase, read, True, False) - pass_numbers(network, phase, read, True, False)
    assert difference == 2 * 8 * 100, "two rows of logits for each sequence"
