"""Recipes whose texts have any number of labels, from the files to stock transformers."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.export.conftest import run_card
from tests.unit.resumed import assert_resumes
from tests.unit.test_classification import UNTIL_EVALUATE, recipe
from tests.unit.train.test_run import Notes

from bertwright import Encoder, Recipe, run
from bertwright.core.errors import DataError
from bertwright.core.files import read_json

pytestmark = pytest.mark.heavy

LABELS = ("poor", "fine", "wet")
FAMILIES = {
    "bert": (),
    "distilbert": ("model.config=", "model.kind=distilbert", "model.size=tiny"),
    "modern": ("model.config=", "model.kind=modern", "model.size=tiny"),
}


def texts() -> list[dict[str, Any]]:
    """Texts whose labels are words that occur in them."""
    found = []
    for noun, wet in (("mill", []), ("river", ["wet"]), ("bread", [])):
        for word, labels in (("bad", ["poor"]), ("good", ["fine"]), ("warm", []), ("bad good", ["poor", "fine"])):
            found.append({"text": f"the {noun} is {word} .", "label": labels + wet})
    return found


@pytest.mark.parametrize("network", FAMILIES.values(), ids=FAMILIES)
def test_labels_are_learned_and_transformers_gives_them(
    network: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    rows = texts()
    recipe(tmp_path, f"labels = {json.dumps(LABELS)}, several = true", rows)
    settings = [*network, "train.phases.0.epochs=6", f"train.phases.0.learning_rate={2e-3 if network else 1e-2}"]
    out = run(Recipe.load(tmp_path / "recipe.toml", settings), tmp_path / "run").path
    scores = read_json(out / "evaluate" / "scores.json")
    answers = Encoder(out).classify([row["text"] for row in rows])
    given = [{label for label, p in answer.items() if p > 0.5} for answer in answers]
    hits = sum(len(labels & {*row["label"]}) for labels, row in zip(given, rows, strict=True))
    both = sum(len(labels) + len(row["label"]) for labels, row in zip(given, rows, strict=True))
    right = [labels == {*row["label"]} for labels, row in zip(given, rows, strict=True)]
    assert scores["f1_micro"] == pytest.approx(2 * hits / both) and scores["accuracy"] == pytest.approx(sum(right) / 12)
    assert scores["labels_loss"] < scores["frequency_loss"], "it has learned"
    assert scores["frequent"] == "poor, fine, wet" and scores["majority_label"] == "no label"
    assert scores["majority"] == pytest.approx(2 / 12)
    # Six texts have each of the first two labels, four the third: 16 of 36 answers are right. Without it, 12 of 24.
    assert scores["majority_f1_micro"] == pytest.approx(2 * 16 / (36 + 16))
    assert scores["classes"]["wet"]["support"] == 4 and scores["answered"].keys() == {*LABELS}
    assert len((out / "evaluate" / "errors.jsonl").read_text().splitlines()) == 12 - sum(right)
    row = json.loads((out / "train" / "metrics.jsonl").read_text().splitlines()[-1])
    assert row["heldout_labels_accuracy"] == row["heldout_accuracy"] == scores["accuracy"]
    for name in ("f1_micro", "f1_macro", "matthews"):
        assert row[f"heldout_{name}"] == pytest.approx(scores[name]), "training scores answers as evaluate does"
    epochs = read_json(out / "summary.json")["epochs"]
    assert epochs["name"] == "f1_micro" and epochs["last"]["score"] == row["heldout_f1_micro"]
    assert epochs["best"]["score"] >= epochs["last"]["score"] and "chosen by the held-out" in epochs["note"]
    seen = [f"the {noun} is {word} ." for noun in ("mill", "river") for word in ("bad", "good", "warm", "bad good")]
    encoder = Encoder(out).classify(seen)
    assert Encoder(out / "export" / "hf").classify(seen) == encoder
    classify = transformers.pipeline("text-classification", model=str(out / "export" / "hf"), device="cpu", top_k=None)
    for ours, theirs in zip(encoder, classify(seen), strict=True):
        assert ours == {each["label"]: pytest.approx(each["score"], abs=1e-5) for each in theirs}
    assert len({round(sum(answer.values()), 3) for answer in encoder}) > 1, "the probabilities do not compete"
    monkeypatch.chdir(out / "export" / "hf")
    assert all(f"'label': '{label}'" in run_card(out / "export" / "hf", capsys)[0] for label in LABELS)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Each label" in page and "F1 of all labels (micro)" in page and "always “poor, fine, wet”" in page


def test_texts_that_all_have_the_same_labels_are_refused(tmp_path: Path) -> None:
    rows = [{"text": f"the {word} is good .", "label": "poor|wet"} for word in ("mill", "river", "bread") * 4]
    wanted = recipe(tmp_path, f"labels = {json.dumps(LABELS)}, several = true", rows)
    with pytest.raises(
        DataError, match="all 36 training texts that were read have the label poor, wet, so there is nothing to learn"
    ):
        run(wanted, tmp_path / "run")


def test_a_constant_answer_is_reported(tmp_path: Path) -> None:
    recipe(tmp_path, f"labels = {json.dumps(LABELS)}, several = true", texts() * 10)
    settings = ["train.phases.0.epochs=1", "train.phases.0.learning_rate=1e-9"]
    notes = Notes()
    out = run(Recipe.load(tmp_path / "recipe.toml", settings), tmp_path / "run", UNTIL_EVALUATE, log=notes).path
    scores = read_json(out / "evaluate" / "scores.json")
    assert scores["answers"] == 1 and scores["matthews"] is None and scores["untrained"]
    assert any("it gives every text the same labels" in note for note in notes.lines)
    errors = [json.loads(line) for line in (out / "evaluate" / "errors.jsonl").read_text().splitlines()]
    losses = [error["loss"] for error in errors]
    assert len(errors) == 20 and losses == sorted(losses, reverse=True)
    assert {error["answer"] for error in errors} < {"no label", *LABELS, "poor, fine", "fine, wet", "poor, wet"}


def test_a_stopped_training_ends_with_the_same_weights_and_scores(tmp_path: Path) -> None:
    recipe(tmp_path, f"labels = {json.dumps(LABELS)}, several = true", texts())
    settings = ["train.log_every=1", "train.phases.0.epochs=4", "train.evaluate_every=5"]
    assert_resumes(Recipe.load(tmp_path / "recipe.toml", settings), tmp_path, 9)
