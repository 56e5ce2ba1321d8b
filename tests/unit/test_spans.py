"""Recipes that answer questions: trained, scored, exported, and answered alike by stock transformers."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.reference.teachers import SPECIALS
from tests.unit.export.conftest import run_card
from tests.unit.resumed import assert_resumes

from bertwright import Recipe, RunFolder, run
from bertwright.core.errors import DataError
from bertwright.core.files import read_json
from bertwright.core.log import SILENT
from bertwright.tasks.span.config import SpanConfig
from bertwright.tasks.span.task import SpanTask

pytestmark = pytest.mark.heavy

NAMES, PLACES = ("Ada", "Peter", "Éva"), ("London", "Budapest", "old Buda")
ENTRIES = (*SPECIALS, "ada", "peter", "eva", "london", "buda", "##pest", "old", "lives", "in", ".", "where", "who", "?")
RECIPE = """
vocab.file = {vocab}
vocab.lower_case = true
model = {{{model}}}
optim.kind = "adamw"

[train]
device = "cpu"
objective = {{kind = "span", stride = 4, max_query = 6, max_answer = 3}}

[[train.phases]]
length = 24
batch = 8
learning_rate = 3e-3
epochs = {epochs}
data = {data}
"""


def paragraphs(impossible: bool) -> list[dict[str, Any]]:
    """Texts of two sentences: where and who a person is can be answered, but not of a person who is not in them."""
    found = []
    for (a, b), (x, y) in product(((0, 1), (1, 2), (2, 0), (1, 0)), ((0, 1), (1, 2), (2, 0))):
        text = f"{NAMES[a]} lives in {PLACES[x]}. {NAMES[b]} lives in {PLACES[y]}."
        asked = [(f"Where lives {NAMES[a]}?", PLACES[x]), (f"Who lives in {PLACES[y]}?", NAMES[b])]
        asked += [(f"Where lives {NAMES[3 - a - b]}?", "")] if impossible else []
        questions = [
            {
                "id": f"{len(found)}-{i}",
                "question": question,
                "answers": [{"text": answer, "answer_start": text.index(answer)}] if answer else [],
            }
            for i, (question, answer) in enumerate(asked)
        ]
        found.append({"context": text, "qas": questions})
    return found


def recipe(folder: Path, model: str, impossible: bool, epochs: int, *more: str) -> Recipe:
    data = folder / "data"
    data.mkdir(exist_ok=True)
    content = json.dumps({"data": [{"paragraphs": paragraphs(impossible)}]})
    for name in ("train-v2.0.json", "dev-v2.0.json"):
        (data / name).write_text(content, encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(ENTRIES) + "\n", encoding="utf-8")
    paths = {name: json.dumps(str(folder / file)) for name, file in (("vocab", "vocab.txt"), ("data", "data"))}
    text = RECIPE.format(model=f'kind = "{model}", size = "tiny"', epochs=epochs, **paths)
    (folder / "recipe.toml").write_text(text)
    return Recipe.load(folder / "recipe.toml", list(more))


@pytest.mark.parametrize("model", ["bert", "distilbert", "modern"])
def test_answers_are_found_and_stock_transformers_finds_the_same(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    out = tmp_path / "run"
    run(recipe(tmp_path, model, True, 40), out, log=SILENT)
    scores, summary = read_json(out / "evaluate" / "scores.json"), read_json(out / "summary.json")
    assert scores["questions"] == 36 and scores["majority"] == pytest.approx(1 / 3)
    assert scores["f1"] == summary["f1"] > 0.6 and not scores["untrained"]
    assert scores["f1"] >= scores["f1_no_threshold"]
    assert scores["has_answer"]["questions"] == 24 and scores["no_answer"]["questions"] == 12
    row = [row for row in RunFolder(out).metrics if "heldout_f1" in row][-1]
    assert row["heldout_f1"] == pytest.approx(scores["f1"]) and row["heldout_exact"] == pytest.approx(scores["exact"])
    errors = [json.loads(line) for line in (out / "evaluate" / "errors.jsonl").read_text().splitlines()]
    assert len(errors) == min(36 - round(36 * scores["exact"]), 20) and all(e["answer"] != e["gold"] for e in errors)
    hf = out / "export" / "hf"
    theirs = transformers.AutoModelForQuestionAnswering.from_pretrained(hf)
    tokenizer = transformers.AutoTokenizer.from_pretrained(hf)
    right = 0
    for paragraph in paragraphs(True):
        for each in paragraph["qas"]:
            given = _answer(theirs, tokenizer, each["question"], paragraph["context"], scores["threshold"])
            right += given == (each["answers"][0]["text"] if each["answers"] else "")
    assert right / 36 == pytest.approx(scores["exact"])
    monkeypatch.chdir(hf)
    (shown,) = run_card(hf, capsys, lines=16)
    assert shown == "no answer" or shown in (hf / "README.md").read_text(encoding="utf-8")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "exact match" in page
    assert "was tuned on the same questions" in page


def _answer(model: Any, tokenizer: Any, question: str, text: str, threshold: float) -> str:
    """The answer of transformers' model to a question about a text of one window; "" if there is none."""
    encoding = tokenizer(question, text, return_tensors="pt", return_offsets_mapping=True)
    offsets, parts = encoding.pop("offset_mapping")[0].tolist(), encoding.sequence_ids(0)
    with torch.no_grad():
        start, end = (logits[0] for logits in list(model(**encoding).values())[:2])
    inside = [i for i, part in enumerate(parts) if part == 1]
    best, first, last = max((float(start[a] + end[b]), a, b) for a in inside for b in inside if a <= b < a + 3)
    # The threshold is the margin of a question, which differs here by a rounding.
    return "" if float(start[0] + end[0]) - best > threshold + 1e-4 else text[offsets[first][0] : offsets[last][1]]


def test_without_impossible_questions_there_is_always_an_answer(tmp_path: Path) -> None:
    out = tmp_path / "run"
    wanted = recipe(tmp_path, "bert", False, 2, "evaluate.samples=3", "train.phases.0.length=16")
    run(wanted, out, ("vocab", "examples", "train", "evaluate"), SILENT)
    scores, answers = read_json(out / "evaluate" / "scores.json"), read_json(out / "evaluate" / "predictions.json")
    assert scores["sequences"] > scores["questions"] == 24, "some texts have several windows"
    assert scores["majority"] == 0.0 and "threshold" not in scores and "has_answer" not in scores
    assert len(answers) == 3
    for each in answers:
        assert each["gold"] in each["text"]
        assert "no answer" not in [guess["token"] for guess in each["top"]]
        assert [guess["probability"] for guess in each["top"]] == sorted(
            (guess["probability"] for guess in each["top"]), reverse=True
        )


def test_scores_in_training_have_a_verdict() -> None:
    section = SpanTask(SpanConfig()).section
    row = {"total_steps": 3, "heldout_start_loss": 1.0, "heldout_exact": 0.5, "heldout_f1": 0.6}
    scores = section.taken([row], {"heldout": {"majority": 0.25, "examples": 60}})
    said = section.verdict(scores).replace("\u00a0", " ")
    assert "50 % of the answers to 60 held-out questions" in said and "never answering: 25 %" in said
    assert said.startswith("The model answers questions")
    assert "has not been scored" in section.verdict(section.taken([], {"heldout": {"majority": 0.25, "examples": 60}}))
    little = {**scores, "majority": 0.0, "exact": 0.0, "f1": 0.061}
    assert section.verdict(little).startswith("The model is hardly better than never answering")


def test_a_stopped_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    assert_resumes(recipe(tmp_path, "bert", True, 6, "train.log_every=1"), tmp_path, 9)


def test_files_without_questions_are_refused(tmp_path: Path) -> None:
    wanted = recipe(tmp_path, "bert", False, 1)
    (tmp_path / "data" / "train-v2.0.json").write_text('{"data": []}')
    with pytest.raises(DataError, match="no labelled question to train on"):
        run(wanted, tmp_path / "run", ("vocab", "examples"), SILENT)
