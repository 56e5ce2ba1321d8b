"""Recipes that tag words: trained, scored, exported, and answered alike by stock transformers."""

import json
from pathlib import Path
from typing import Any

import pytest
from seqeval.metrics import f1_score
from tests.reference.teachers import SPECIALS
from tests.unit.export.conftest import run_card
from tests.unit.resumed import assert_resumes

from bertwright import Recipe, RunFolder, run
from bertwright.core.errors import DataError
from bertwright.core.files import read_json
from bertwright.core.log import SILENT

pytestmark = pytest.mark.heavy

NAMES, PLACES = ("ada", "peter"), ("london", "buda ##pest")
ENTRIES = (*SPECIALS, *NAMES, "london", "buda", "##pest", "met", "in", "lives", "old", ".")
RECIPE = """
vocab.file = {vocab}
vocab.lower_case = true
model = {{{model}}}
optim.kind = "adamw"

[train]
device = "cpu"
objective = {{kind = "tagging", {objective}}}

[[train.phases]]
length = 12
batch = 8
learning_rate = 3e-3
epochs = 25
data = {data}
"""


def sentences() -> list[str]:
    """A file of sentences whose names and places are entities; some places have two words."""
    found = []
    for name in ("Ada", "Peter"):
        for place in ("London", "old London", "Budapest", "old Budapest"):
            words = [f"{name}\tB-PER", "lives\tO", "in\tO"]
            parts = place.split()
            words += [f"{part}\t{'I' if i else 'B'}-LOC" for i, part in enumerate(parts)]
            found.append("\n".join([*words, ".\tO"]))
    return found


def recipe(folder: Path, objective: str, model: str = 'size = "tiny"') -> Recipe:
    data = folder / "data"
    data.mkdir(exist_ok=True)
    (data / "train.conll").write_text("\n\n".join(sentences() * 4) + "\n", encoding="utf-8")
    (data / "dev.conll").write_text("\n\n".join(sentences()) + "\n", encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(ENTRIES) + "\n", encoding="utf-8")
    paths = {name: json.dumps(str(folder / file)) for name, file in (("vocab", "vocab.txt"), ("data", "data"))}
    (folder / "recipe.toml").write_text(RECIPE.format(objective=objective, model=model, **paths))
    return Recipe.load(folder / "recipe.toml")


@pytest.mark.parametrize("model", ["bert", "distilbert", "modern"])
def test_entities_are_found_and_stock_transformers_finds_the_same(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    out = tmp_path / "run"
    run(recipe(tmp_path, 'entities = ["PER", "LOC"]', f'kind = "{model}", size = "tiny"'), out, log=SILENT)
    scores, summary = read_json(out / "evaluate" / "scores.json"), read_json(out / "summary.json")
    assert scores["f1"] == scores["f1_conlleval"] == summary["f1"] == 1.0
    assert scores["types"]["LOC"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "entities": 8}
    assert scores["majority_label"] == "O"
    row = [row for row in RunFolder(out).metrics if "heldout_f1" in row][-1]
    assert (row["heldout_f1"], row["heldout_f1_conlleval"], row["heldout_accuracy"]) == (1.0, 1.0, 1.0)
    assert summary["epochs"]["name"] == "f1" and (out / "evaluate" / "errors.jsonl").read_bytes() == b""
    tag = transformers.pipeline("token-classification", model=str(out / "export" / "hf"), device="cpu")
    predicted, actual = [], []
    for sentence in sentences():
        words, tags = zip(*(line.split("\t") for line in sentence.split("\n")), strict=True)
        found = {line["start"]: line["entity"] for line in tag(" ".join(words), ignore_labels=[])}
        starts = [len(" ".join(words[:i])) + (i > 0) for i in range(len(words))]
        predicted.append([found[start] for start in starts])
        actual.append(list(tags))
    assert f1_score(actual, predicted, mode="strict") == scores["f1"]
    monkeypatch.chdir(out / "export" / "hf")
    run_card(out / "export" / "hf", capsys)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "F1 of entities" in page
    assert "always “O”" in page


def test_an_entity_in_two_parts_of_a_sentence_is_one(tmp_path: Path) -> None:
    """Parts of six tokens at most: "old London" stands in two."""
    recipe(tmp_path, 'entities = ["PER", "LOC"]')
    for name in ("train", "dev"):
        long = "\n\n".join(f"met\tO\nmet\tO\n{sentence}" for sentence in sentences())
        (tmp_path / "data" / f"{name}.conll").write_text(long + "\n", encoding="utf-8")
    short = ["train.phases.0.length=8", "train.phases.0.epochs=1"]
    out = tmp_path / "run"
    run(Recipe.load(tmp_path / "recipe.toml", short), out, ("vocab", "examples", "train", "evaluate"), SILENT)
    scores = read_json(out / "evaluate" / "scores.json")
    assert scores["sequences"] == 8
    assert {kind: each["entities"] for kind, each in scores["types"].items()} == {"LOC": 8, "PER": 8}


def test_parts_of_speech_have_no_entities(tmp_path: Path) -> None:
    wanted = recipe(tmp_path, 'tags = ["N", "V"]')
    lines = ["Ada\tN\nmet\tV\nPeter\tN", "Peter\tN\nlives\tV"]
    for name, times in (("train", 20), ("dev", 2)):
        (tmp_path / "data" / f"{name}.conll").write_text("\n\n".join(lines * times) + "\n")
    out = tmp_path / "run"
    run(wanted, out, ("vocab", "examples", "train", "evaluate"), SILENT)
    scores: dict[str, Any] = read_json(out / "evaluate" / "scores.json")
    assert scores["accuracy"] == 1.0
    assert scores["majority"] == 0.6
    assert "f1" not in scores


def test_a_stopped_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    recipe(tmp_path, 'entities = ["PER", "LOC"]')
    assert_resumes(Recipe.load(tmp_path / "recipe.toml", ["train.log_every=1"]), tmp_path, 14)


def test_files_without_known_tags_are_refused(tmp_path: Path) -> None:
    wanted = recipe(tmp_path, 'entities = ["PER", "LOC"]')
    (tmp_path / "data" / "train.conll").write_text("\n")
    with pytest.raises(DataError, match=r"train\.conll has no words"):
        run(wanted, tmp_path / "run", ("vocab", "examples"), SILENT)
