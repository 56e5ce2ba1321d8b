"""Recipes that choose answers: trained, scored, exported, and answered alike by stock transformers."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.reference.teachers import SPECIALS
from tests.unit.export.conftest import run_card
from tests.unit.resumed import assert_resumes

from bertwright import Encoder, Recipe, RunFolder, run
from bertwright.core.errors import DataError
from bertwright.core.files import read_json
from bertwright.core.log import SILENT

pytestmark = pytest.mark.heavy

NAMES, PLACES = ("Ada", "Peter", "Eva", "Bob"), ("London", "Budapest", "Rome", "old Buda")
ENTRIES = (*SPECIALS, *map(str.lower, NAMES), "london", "buda", "##pest", "rome", "old", "lives", "in", ".", "who", "?")
RECIPE = """
vocab.file = {vocab}
vocab.lower_case = true
model = {{{model}}}
optim.kind = "adamw"

[train]
device = "cpu"
objective = {{kind = "choice"}}

[[train.phases]]
length = 16
batch = 8
learning_rate = 2e-3
epochs = {epochs}
data = {data}
"""


def questions() -> list[dict[str, Any]]:
    """A hundred questions with two to four names, of which the one in the text is right."""
    found = []
    for name, place, number in list(product(range(4), range(4), range(7)))[:100]:
        others = [(name + step) % 4 for step in (1, 2, 3)][: 1 + number % 3]
        choices = [NAMES[each] for each in others]
        choices.insert((name + number) % (len(others) + 1), NAMES[name])
        text = f"{NAMES[name]} lives in {PLACES[place]}."
        found.append({"context": text, "question": "who ?", "choices": choices, "label": choices.index(NAMES[name])})
    return found


def recipe(folder: Path, model: str, epochs: int, *more: str) -> Recipe:
    data = folder / "data"
    data.mkdir(exist_ok=True)
    lines = "\n".join(map(json.dumps, questions())) + "\n"
    for name in ("train", "dev"):
        (data / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(ENTRIES) + "\n", encoding="utf-8")
    paths = {name: json.dumps(str(folder / file)) for name, file in (("vocab", "vocab.txt"), ("data", "data"))}
    text = RECIPE.format(model=f'kind = "{model}", size = "tiny"', epochs=epochs, **paths)
    (folder / "recipe.toml").write_text(text)
    return Recipe.load(folder / "recipe.toml", list(more))


@pytest.mark.parametrize("model", ["bert", "distilbert", "modern"])
def test_choices_are_right_and_stock_transformers_gives_the_same(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    out = tmp_path / "run"
    run(recipe(tmp_path, model, 12), out, log=SILENT)
    scores, summary = read_json(out / "evaluate" / "scores.json"), read_json(out / "summary.json")
    assert scores["sequences"] == scores["repeated"] == 100 and scores["majority_label"].startswith("choice ")
    assert scores["chance"] == pytest.approx(sum(1 / len(each["choices"]) for each in questions()) / 100)
    assert scores["accuracy"] == summary["accuracy"] > scores["majority"] and not scores["untrained"]
    row = [row for row in RunFolder(out).metrics if "heldout_accuracy" in row][-1]
    assert row["heldout_accuracy"] == scores["accuracy"]
    hf = out / "export" / "hf"
    theirs = transformers.AutoModelForMultipleChoice.from_pretrained(hf)
    tokenizer = transformers.AutoTokenizer.from_pretrained(hf)
    ours, right = Encoder(out), 0
    for each in questions():
        endings = [f"who ? {choice}" for choice in each["choices"]]
        inputs = tokenizer([each["context"]] * len(endings), endings, padding=True, return_tensors="pt")
        with torch.no_grad():
            logits = theirs(**{name: values[None] for name, values in inputs.items()}).logits[0]
        right += int(logits.argmax()) == each["label"]
        (answer,) = ours.choose([(each["context"], endings)])
        assert answer == pytest.approx(logits.softmax(-1).tolist(), abs=1e-5)
    assert right / 100 == pytest.approx(scores["accuracy"])
    monkeypatch.chdir(hf)
    (shown,) = run_card(hf, capsys, lines=12)
    assert shown
    assert "accuracy" in (out / "report.html").read_text(encoding="utf-8")


def test_a_stopped_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    assert_resumes(recipe(tmp_path, "bert", 3, "train.log_every=1"), tmp_path, 9)


def test_files_without_labels_are_refused(tmp_path: Path) -> None:
    wanted = recipe(tmp_path, "bert", 1)
    unlabelled = [{**each, "label": -1} for each in questions()]
    (tmp_path / "data" / "train.jsonl").write_text("\n".join(map(json.dumps, unlabelled)))
    with pytest.raises(DataError, match="no labelled question to train on"):
        run(wanted, tmp_path / "run", ("vocab", "examples"), SILENT)
