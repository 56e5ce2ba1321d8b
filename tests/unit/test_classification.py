"""Recipes that classify: from random and pre-trained weights, classes and numbers, down to stock transformers."""

import ast
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests.reference.teachers import SPECIALS, write_stock
from tests.rows import each_row
from tests.unit.export.conftest import run_card
from tests.unit.train.test_run import Notes, metric_lines, same, weights

from bertwright import Recipe, run
from bertwright.check.machine.resources import memory
from bertwright.core.artifact import open_artifact
from bertwright.core.errors import Interrupted, RecipeError
from bertwright.core.files import read_json
from bertwright.core.numbers import percent
from bertwright.examples.labelled.config import Columns, LabelledTexts
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import load_network
from bertwright.pipeline.stage import STAGES
from bertwright.tasks.classification.scores import scores_of
from bertwright.tasks.classification.section import ClassificationSection

pytestmark = pytest.mark.heavy

WORDS = ("the", "old", "mill", "river", "bread", "is", "sings", "good", "bad", "cold", "warm", ".")
ENTRIES = (*SPECIALS, *WORDS)
NUMBERS = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
UNTIL_TRAIN = ("vocab", "examples", "train")
UNTIL_EVALUATE = (*UNTIL_TRAIN, "evaluate")
RECIPE = """
vocab.file = {vocab}
model.config = {model}
optim.kind = "adamw"
evaluate.samples = 2

[train]
device = "cpu"
objective = {{kind = "classification", {objective}}}

[[train.phases]]
length = 16
batch = 8
learning_rate = 3e-2
epochs = 12
data = {data}
"""


def texts() -> list[dict[str, Any]]:
    """Sentences that are told apart by one word."""
    nouns = ("mill", "river", "bread")
    adjectives = (("old", "bad", 0), ("old", "good", 1), ("cold", "bad", 0), ("warm", "good", 1))
    return [{"text": f"the {a} {n} is {b} .", "label": label} for n in nouns for a, b, label in adjectives]


def recipe(folder: Path, objective: str, rows: list[dict[str, Any]]) -> Recipe:
    data = folder / "data"
    data.mkdir(exist_ok=True)
    for name, each in (("train", rows * 3), ("dev", rows)):
        (data / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in each))
    (folder / "vocab.txt").write_text("\n".join(ENTRIES) + "\n")
    config = {"model_type": "bert", "vocab_size": len(ENTRIES), "max_position_embeddings": 16, **NUMBERS}
    (folder / "config.json").write_text(json.dumps(config | {"initializer_range": 0.1}))
    values = {"data": str(data), "vocab": str(folder / "vocab.txt"), "model": str(folder / "config.json")}
    quoted = {name: json.dumps(value) for name, value in values.items()}
    (folder / "recipe.toml").write_text(RECIPE.format(objective=objective, **quoted))
    return Recipe.load(folder / "recipe.toml")


def test_classes_are_learnt_and_stock_transformers_tells_them_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    rows = [{**row, "text": f"{row['text']} [SEP] zebra"} for row in texts()]
    wanted = recipe(tmp_path, 'labels = ["poor", "fine"]', rows)
    out = tmp_path / "run"
    run(wanted, out)
    shown = [line["text"] for line in read_json(out / "evaluate" / "predictions.json")]
    assert shown and all(text.endswith(". [SEP] [UNK]") for text in shown), "the export compares these texts"
    summary = read_json(out / "summary.json")
    assert summary["accuracy"] == summary["f1"] == pytest.approx(summary["matthews"]) == 1.0
    assert summary["majority"] == 0.5
    assert summary["labels"] == ["poor", "fine"] and "mlm_loss" not in summary
    row = json.loads((out / "train" / "metrics.jsonl").read_text().splitlines()[-1])
    assert row["heldout_classification_accuracy"] == 1.0
    broken = scores_of(np.array([[0.0, 1.0], [np.nan, 0.0]]), np.array([1, 0]), open_artifact(out / "examples"))
    assert (broken["accuracy"], broken["f1"], broken["matthews"], broken["majority"]) == (None, None, None, 0.5)
    classify = transformers.pipeline("text-classification", model=str(out / "export" / "hf"), device="cpu")
    assert [line["label"] for line in classify(["The warm mill is good.", "The cold river is bad."])] == [
        "fine",
        "poor",
    ]
    monkeypatch.chdir(out / "export" / "hf")
    assert "'label': " in run_card(out / "export" / "hf", capsys)[0]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Matthews' correlation" in page and "always “poor”: 50" in page and "Loss of masked" not in page
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    run(wanted, out)
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == before


CARDS = {
    "several classes": ('labels = ["poor", "fair", "fine"]', ()),
    "pairs": ('labels = ["poor", "fine"], pair = "other"', ()),
    "pairs of several classes": ('labels = ["poor", "fair", "fine"], pair = "other"', ()),
    "numbers": ('labels = ["score"]', ()),
    "pairs with numbers": ('labels = ["score"], pair = "other"', ()),
    "ModernBERT": ('labels = ["poor", "fine"]', ("model.kind=modern", "model.size=tiny")),
    "pairs for a ModernBERT": ('labels = ["poor", "fine"], pair = "other"', ("model.kind=modern", "model.size=tiny")),
    "DistilBERT": ('labels = ["poor", "fine"]', ("model.kind=distilbert", "model.size=tiny")),
    "numbers from a DistilBERT": ('labels = ["score"]', ("model.kind=distilbert", "model.size=tiny")),
}


@pytest.mark.parametrize(("objective", "network"), CARDS.values(), ids=CARDS)
def test_the_program_of_the_card_gives_our_answer(
    objective: str,
    network: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    rows = [{**row, "other": f"the {WORDS[number]} sings ."} for number, row in enumerate(texts())]
    recipe(tmp_path, objective, rows)
    settings = ["train.phases.0.epochs=2", *network, *(("model.config=",) if network else ())]
    out = run(Recipe.load(tmp_path / "recipe.toml", settings), tmp_path / "run").path
    monkeypatch.chdir(out / "export" / "hf")
    (printed,) = run_card(out / "export" / "hf", capsys)
    answer = ast.literal_eval(printed)
    answer = answer[0] if isinstance(answer, list) else answer
    if shown := read_json(out / "evaluate" / "predictions.json"):
        best = shown[0]["top"][0]
        assert answer == {"label": best["token"], "score": pytest.approx(best["probability"], abs=1e-5)}
        return
    # A number is not squeezed into a probability.
    model = transformers.AutoModelForSequenceClassification.from_pretrained(".", local_files_only=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(".", local_files_only=True)
    texts_given = ("a text", "") if "pair" in objective else ("a text",)
    with torch.inference_mode():
        number = float(model(**tokenizer(*texts_given, return_tensors="pt")).logits)
    assert answer == {"label": "score", "score": pytest.approx(number, abs=1e-5)}


def log(notes: Notes) -> str:
    return " ".join(notes.lines).replace("\u00a0", " ")


def test_a_classifier_that_always_answers_one_class_is_said_to_have_learned_nothing(tmp_path: Path) -> None:
    """In the terminal, on the page, in the summary and on the card."""
    pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    recipe(tmp_path, 'labels = ["poor", "fine"]', [{**row, "label": int(n > 3)} for n, row in enumerate(texts())])
    still = Recipe.load(tmp_path / "recipe.toml", ["train.phases.0.learning_rate=1e-12"])
    out, notes = tmp_path / "run", Notes()
    run(still, out, log=notes)
    summary = read_json(out / "summary.json")
    assert summary["matthews"] is None and sorted(summary["answered"].values()) == [0, 12]
    wanted = "The model has learned nothing: it answers “"
    said = summary["verdict"].replace("\u00a0", " ")
    assert said.startswith(wanted) and "no second class is predicted" in said
    assert "where always answering “fine” would be right for 66.7 %" in said
    assert summary["majority"] == pytest.approx(8 / 12) and summary["majority_f1"] == pytest.approx(0.8)
    assert "always answering 'fine' has an accuracy of 66.7%" in log(notes)
    assert f"evaluate: {wanted}" in log(notes) and "Matthews' correlation undefined" in log(notes)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert f'<p class="verdict warning">{wanted}' in page and "<p>no second class is predicted</p>" in page
    assert f"> **Untrained.** {wanted}" in (out / "export/hf/README.md").read_text(encoding="utf-8")


def test_numbers_that_are_all_the_same_are_said_to_be(tmp_path: Path) -> None:
    rows = [{**row, "label": 3.5 if row["label"] else -1.5} for row in texts()]
    recipe(tmp_path, 'labels = ["score"]', rows)
    still = Recipe.load(tmp_path / "recipe.toml", ["train.phases.0.learning_rate=1e-12", "model.dropout=0"])
    notes = Notes()
    run(still, tmp_path / "run", UNTIL_EVALUATE, log=notes)
    assert "always answering the mean has a squared error of 6.250" in log(notes)
    assert "has learned nothing" in log(notes) and "(constant answer 6.2500)" in log(notes)


def test_a_page_on_the_way_invents_no_baseline() -> None:
    facts: Any = SimpleNamespace(scores={"accuracy": 0.9})
    section = ClassificationSection(LabelledTexts(("no", "yes"), (Columns("label", "text"),)))
    assert section.cards(facts) == [("accuracy", percent(0.9), "")]


def test_numbers_are_learnt(tmp_path: Path) -> None:
    rows = [{**row, "label": 3.5 if row["label"] else -1.5} for row in texts()]
    run(recipe(tmp_path, 'labels = ["score"]', rows), tmp_path / "run", stages=UNTIL_EVALUATE)
    scores = read_json(tmp_path / "run" / "evaluate" / "scores.json")
    assert scores["regression_loss"] < 0.5 < scores["constant_loss"] == pytest.approx(6.25)
    assert scores["pearson"] > 0.97 and scores["spearman"] > 0.8
    answers = np.array([[1.0], [np.nan], [2.0]])
    broken = scores_of(answers, np.array([1.0, 2.0, 3.0]), open_artifact(tmp_path / "run" / "examples"))
    assert (broken["pearson"], broken["spearman"]) == (None, None)
    assert read_json(tmp_path / "run" / "evaluate" / "predictions.json") == []


@each_row("error", [None, RuntimeError])
@each_row("labels", ['["poor", "fine"]', '["score"]'])
def test_stopped_or_crashed_and_continued_it_ends_bit_identical(
    labels: str, error: type[Exception] | None, tmp_path: Path
) -> None:
    recipe(tmp_path, f"labels = {labels}", texts())
    wanted = Recipe.load(tmp_path / "recipe.toml", ["train.log_every=1"])
    undisturbed, disturbed = tmp_path / "one", tmp_path / "two"
    run(wanted, undisturbed, UNTIL_TRAIN)
    with pytest.raises(error or Interrupted):
        run(wanted, disturbed, UNTIL_TRAIN, log=Notes(kill_at_row=23, error=error))
    run(wanted, disturbed, UNTIL_TRAIN)
    one, two = (open_artifact(folder / "train") for folder in (undisturbed, disturbed))
    assert same(weights(one), weights(two)) and metric_lines(one.path) == metric_lines(two.path)


def test_it_starts_from_a_folder_of_transformers_and_from_a_run_of_ours(tmp_path: Path) -> None:
    """Of the pre-trained network the encoder; of a classifier of the same classes the classifier, too."""
    torch.manual_seed(7)
    wide = {"vocab_size": len(ENTRIES), "max_position_embeddings": 16, "initializer_range": 0.1}
    teacher = PreTrainingModel(BertConfig(**NUMBERS, **wide))
    write_stock(tmp_path / "stock", teacher, ENTRIES)
    objective, rate = 'labels = ["poor", "fine"]', "train.phases.0.learning_rate=1e-9"
    recipe(tmp_path, objective, texts())
    start = [rate, f"train.init_from={tmp_path / 'stock'}"]
    run(Recipe.load(tmp_path / "recipe.toml", start), tmp_path / "one", stages=UNTIL_TRAIN)
    own = load_network(tmp_path / "one" / "train" / "model").state_dict()
    for name, tensor in teacher.state_dict().items():
        if name.startswith("bert."):
            torch.testing.assert_close(own[name], tensor, rtol=0, atol=1e-6)
    assert float(own["classification.classifier.weight"].std()) < 0.3
    again = [rate, f"train.init_from={tmp_path / 'one' / 'train'}", "train.seed=9"]
    run(Recipe.load(tmp_path / "recipe.toml", again), tmp_path / "two", stages=UNTIL_TRAIN)
    for name, tensor in load_network(tmp_path / "two" / "train" / "model").state_dict().items():
        torch.testing.assert_close(tensor, own[name], rtol=0, atol=1e-6, msg=lambda m, n=name: f"{n}: {m}")


@each_row(
    ("overrides", "says"),
    [
        (["train.objective.task=cola"], "give exactly one of task (one of GLUE's: cola, "),
        (["train.objective.labels=", "train.objective.task=cola", "train.objective.text=a"], "leave out text"),
        (['train.objective.labels=["a","a"]'], "contain a class twice"),
        (["train.phases.0.data="], "train.phases.0.data: train.objective=classification trains on labelled texts"),
        (["train.phases.0.masking.rate=0.2"], "train.phases.0.masking: classification masks no tokens"),
        (["examples.seed=3"], "examples.seed: has no effect with train.objective=classification"),
        (["train.phases.0.document_range=[0.0,0.5]"], "train.phases.0.document_range: "),
        (["examples.passes=3"], "examples.passes: has no effect with train.objective=classification"),
        (["evaluate.mask_rate=0.2"], "evaluate.mask_rate: has no effect"),
        (["train.phases.0.quarantine=true"], "train.phases.0.quarantine: applies to files of finished examples"),
        (["vocab.file=", "vocab.size=100"], "vocab.file: there is no [corpus] to train a vocabulary on"),
        (["corpus.source=sample", "corpus.language=hu"], "corpus: no stage reads it"),
        (["train.graph=ortmodule"], "train.objective: the network of this task cannot be exported"),
        (["train.init_from=/nowhere"], "train.init_from: /nowhere is not a folder"),
    ],
)
def test_what_has_no_meaning_is_refused(overrides: list[str], says: str, tmp_path: Path) -> None:
    recipe(tmp_path, 'labels = ["poor", "fine"]', texts())
    with pytest.raises(RecipeError) as caught:
        Recipe.load(tmp_path / "recipe.toml", overrides)
    assert says in str(caught.value)


def test_updates_are_counted_anew_from_pretrained_weights(tmp_path: Path) -> None:
    """They alone are taken of the network to start from."""
    write_stock(tmp_path / "stock", PreTrainingModel(BertConfig(**NUMBERS, vocab_size=40)))
    recipe(tmp_path, 'labels = ["poor", "fine"]', texts())
    start = [f"train.init_from={tmp_path / 'stock'}", "train.phases.0.restart_bias_correction=false"]
    with pytest.raises(RecipeError, match=r"train\.phases\.0\.restart_bias_correction: false needs optimizer moments"):
        Recipe.load(tmp_path / "recipe.toml", start)


def test_no_workers_are_counted_where_one_process_reads(tmp_path: Path) -> None:
    about = [verdict.about for verdict in memory(recipe(tmp_path, 'labels = ["poor", "fine"]', texts()), STAGES)]
    assert about == ["train memory"]


def test_another_network_to_start_from_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    write_stock(tmp_path / "stock", PreTrainingModel(BertConfig(**{**NUMBERS, "hidden_size": 24}, vocab_size=40)))
    recipe(tmp_path, 'labels = ["poor", "fine"]', texts())
    with pytest.raises(RecipeError, match=r"hidden_size is 24 in .*stock but 16 in \[model\]"):
        Recipe.load(tmp_path / "recipe.toml", [f"train.init_from={tmp_path / 'stock'}"])
