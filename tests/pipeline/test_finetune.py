"""`finetune` from the command line: two seeds, their table, and a model of ours to start from."""

import json
import tomllib
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.pipeline.conftest import Call
from tests.reference.teachers import SPECIALS, write_stock
from tests.rows import each_row

from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_json
from bertwright.core.log import SILENT
from bertwright.finetune.draft import draft
from bertwright.finetune.saved_model import SAVED, rescore
from bertwright.finetune.seeds import SCORES, finetune
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.config import ModelConfig
from bertwright.model.distilbert.config import DistilBertModelConfig
from bertwright.model.modern.config import ModernModelConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.vocab.split import build_tokenizer

pytestmark = pytest.mark.heavy

FEW = ("train.phases.0.length=8", "train.phases.0.batch=8", "train.device=cpu")
SEEN = ["good", "bad", "film", "a", "."]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and texts whose classes follow from a word."""
    monkeypatch.chdir(tmp_path)
    write_model(BertModelConfig(size="tiny"), tmp_path / "model")
    lines = [f"a {word} film .\t{label}" for word, label in (("good", 1), ("bad", 0))]
    for name, times in (("train", 64), ("dev", 8)):
        (tmp_path / f"{name}.tsv").write_text("\n".join(["sentence\tlabel", *lines * times]) + "\n", encoding="utf-8")
    return tmp_path


def write_model(section: ModelConfig, folder: Path) -> None:
    entries = [*SPECIALS, *SEEN]
    write_stock(folder, PreTrainingModel(section.resolve(len(entries), False)), entries)
    build_tokenizer(entries, lower_case=True, strip_accents=True).save(str(folder / "tokenizer.json"))


def test_two_seeds_have_a_table(workplace: Path, call: Call) -> None:
    words = ("finetune", "sst2", "--model", "model", "--data", ".", "--out", "out", "--seeds", "2", *FEW)
    done = call(*words)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].split() == ["seed", "accuracy", "(official)"]
    assert [line.split()[0] for line in lines[1:6]] == ["1", "2", "mean", "least", "greatest"]
    assert lines[6].split() == ["constant", "answer", "0.5000"]
    assert lines[7].endswith("of 2 runs collapsed; ± is the sample standard deviation")
    assert "the worst errors, to read: out/seed-1/evaluate/errors.jsonl" in lines
    results = read_json(workplace / "out" / SCORES)
    values = [read_json(Path(each["folder"]) / "evaluate" / "scores.json")["accuracy"] for each in results["runs"]]
    assert [each["scores"]["accuracy"] for each in results["runs"]] == values == [1.0, 1.0]
    for each in results["runs"]:
        rows = [json.loads(row) for row in (Path(each["folder"]) / "train" / "metrics.jsonl").read_text().splitlines()]
        taken = [row["heldout_accuracy"] for row in rows if "heldout_accuracy" in row]
        assert (
            len(taken) == each["epochs"]["last"]["number"] == 4 and each["epochs"]["last"]["score"] == taken[-1] == 1.0
        )
        best = each["epochs"]["best"]
        assert best["score"] == max(taken) and taken[best["number"] - 1] == max(taken)
        assert read_json(Path(each["folder"]) / "summary.json")["epochs"] == each["epochs"]
    assert results["scores"]["accuracy"]["deviation"] == 0.0 and results["collapsed"] == 0
    one, two = (workplace / "out" / f"seed-{number}" / "examples" / "manifest.json" for number in (1, 2))
    assert one.samefile(two), "examples are made once"
    again = call(*words, "--json")
    assert again.code == 0 and "nothing to do: seed-2" in again.err
    assert json.loads(again.out)["metric"] == "accuracy"
    assert "starting from model; 37 of 37 tensors of the encoder; random weights for" in done.err
    assert "loaded with its own tokenizer, has the same scores: accuracy 1.0000" in done.err
    assert "has the same scores" not in again.err, "what was compared is not compared again"
    refused = call(*words, "train.seed=3")
    assert refused.code == 2 and "--seeds 2 sets train.seed to 1 to 2" in refused.err


def test_choices_are_learned_and_predicted(workplace: Path, call: Call) -> None:
    """From files in COPA's layout to the answers of a test set, which has no labels."""
    rows = [
        {"premise": f"a {word} film .", "choice1": "good", "choice2": "bad", "question": asked, "label": label}
        for label, word in enumerate(("good", "bad"))
        for asked in ("cause", "effect")
    ]
    Path("copa").mkdir()
    for name, times in (("train", 16), ("dev", 2)):
        Path(f"copa/{name}.jsonl").write_text("\n".join(map(json.dumps, rows * times)), encoding="utf-8")
    done = call(
        "finetune", "copa", "--model", "model", "--data", "copa", "--out", "out", *FEW, "train.phases.0.length=16"
    )
    assert done.code == 0, done.err
    assert "train.objective.first = 0: the labels in the files count from 0" in done.err
    assert "loaded with its own tokenizer, has the same scores: accuracy" in done.err
    assert done.out.splitlines()[0].split() == ["seed", "accuracy", "(official)"]
    scores = read_json(Path("out/evaluate/scores.json"))
    assert (scores["sequences"], scores["chance"], scores["majority"]) == (8, 0.5, 0.5)
    test = [{name: value for name, value in row.items() if name != "label"} for row in rows]
    Path("test.jsonl").write_text("\n".join(map(json.dumps, test)), encoding="utf-8")
    answered = call("predict", "out", "test.jsonl")
    assert answered.code == 0, answered.err
    assert {json.loads(line)["prediction"] for line in answered.out.splitlines()} <= {"good", "bad"}
    assert len(answered.out.splitlines()) == len(test)


def test_the_recipe_is_printed_and_runs(workplace: Path, call: Call) -> None:
    done = call("finetune", "sst2", "--model", "model", "--data", ".", "--print", *FEW)
    assert done.code == 0 and not (workplace / "runs").exists()
    assert tomllib.loads(done.out)["train"]["phases"][0]["batch"] == 8
    Path("mine.toml").write_text(done.out, encoding="utf-8")
    as_json = call("finetune", "sst2", "--model", "model", "--data", ".", "--print", "--json", *FEW)
    assert json.loads(as_json.out) == {"text": done.out.rstrip("\n")}
    assert call("check", "mine.toml").code == 0


def test_a_collapsed_run_is_counted(workplace: Path, call: Call) -> None:
    done = call(
        "finetune",
        "sst2",
        "--model",
        "model",
        "--data",
        ".",
        *FEW,
        "train.phases.0.learning_rate=1e-9",
        "train.phases.0.epochs=1",
    )
    assert done.code == 0, done.err
    results = read_json(workplace / "runs" / "sst2-model" / SCORES)
    assert results["collapsed"] == 1 and "collapsed" in done.out
    assert results["scores"]["accuracy"]["deviation"] is None


def test_an_exported_folder_that_is_another_model_is_refused(workplace: Path) -> None:
    drafted = draft("sst2", Path("model"), Path(), (*FEW, "train.seed=1"))
    assert finetune(drafted, Path("run"))["scores"]["accuracy"]["mean"] == 1.0
    (workplace / "run" / SAVED).unlink()
    hf = workplace / "run" / "export" / "hf"
    tensors = load_file(hf / "model.safetensors")
    constant = {**tensors, "classifier.bias": torch.tensor([50.0, -50.0])}
    save_file(constant, hf / "model.safetensors", {"format": "pt"})
    with pytest.raises(ArtifactError, match=r"scores otherwise than the trained model, accuracy by 0\.5000"):
        rescore(drafted.recipe(), Path("run"), ["accuracy"], SILENT)
    # Of the same size, because the sizes of an artifact's files are checked when it is opened.
    text = (hf / "tokenizer.json").read_text(encoding="utf-8")
    numbered = {word: len(SPECIALS) + SEEN.index(word) for word in ("good", "bad")}
    for word, other in (("good", "bad"), ("bad", "good")):
        text = text.replace(f'"{word}": {numbered[word]}', f'"{word}": {numbered[other]}')
    (hf / "tokenizer.json").write_text(text, encoding="utf-8")
    with pytest.raises(ArtifactError, match=r"reads the held-out files otherwise than training did \(tokens differ\)"):
        rescore(drafted.recipe(), Path("run"), ["accuracy"], SILENT)


def test_points_of_a_grid_are_compared(workplace: Path, call: Call) -> None:
    words = ("finetune", "sst2", "--model", "model", "--data", ".", "--out", "out", *FEW, "train.seed=1")
    grid = ("--grid", "learning_rate=1e-9,1e-4", "--grid", "optim.weight_decay=0.01")
    printed = call(*words, *grid, "--print")
    assert tomllib.loads(printed.out)["train"]["phases"][0]["learning_rate"] == 1e-9
    assert "# The first of 2 points of a grid:\n# train.phases.0.learning_rate = 1e-9, 1e-4\n" in printed.out
    done = call(*words, *grid)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].split() == ["learning_rate", "weight_decay", "accuracy", "(official)", "collapsed"]
    assert lines[1].split() == ["1e-9", "0.01", "0.5000", "1", "of", "1"]
    assert lines[2].split()[:2] == ["1e-4", "0.01"] and lines[3].split() == ["constant", "0.5000"]
    assert lines[4].startswith("best: learning_rate 1e-4, weight_decay 0.01: accuracy ")
    assert "which makes its score look better than it is" in done.out and "learning_rate=5e-10" in done.out
    results = read_json(workplace / "out" / SCORES)
    assert results["best"] == 1 and [each["results"]["collapsed"] for each in results["points"]] == [1, 0]
    folders = [workplace / "out" / f"learning_rate-{rate}_weight_decay-0.01" / "seed-1" for rate in ("1e-9", "1e-4")]
    one, two = (folder / "examples" / "manifest.json" for folder in folders)
    assert one.samefile(two), "examples are made once"
    again = call(*words, *grid, "--json")
    assert "nothing to do" in again.err and len(json.loads(again.out)["points"]) == 2


@each_row(
    ("words", "message"),
    [
        (("--grid", "rates"), "--grid rates is no grid. Write KEY=VALUE,VALUE"),
        (("--grid", "batch=8"), "train.phases.0.batch is given twice"),
        (("--grid", "epochs=2", "--grid", "epochs=1"), "train.phases.0.epochs is given twice"),
        (("--grid", "learning_rat=1e-3"), "train.phases.0.learning_rat"),
        (("--grid", "length=8,none"), "train.phases.0.length"),
    ],
)
def test_a_wrong_grid_is_refused_before_any_run(
    words: tuple[str, ...], message: str, workplace: Path, call: Call
) -> None:
    done = call("finetune", "sst2", "--model", "model", "--data", ".", *words, "train.phases.0.batch=8")
    assert done.code == 2 and message in done.err and not (workplace / "runs").exists()


def test_questions_are_answered(workplace: Path, call: Call) -> None:
    texts = [("a good film .", "good"), ("a bad film .", "bad"), (". film a", None)]
    for name, times in (("train", 30), ("dev", 3)):
        (workplace / f"{name}.json").write_text(json.dumps(squad(texts * times)), encoding="utf-8")
    short = ("train.phases.0.length=16", "train.objective.stride=2", "train.objective.max_query=4", *FEW[1:])
    done = call("finetune", "squad", "--model", "model", "--data", ".", "--out", "run", *short)
    assert done.code == 0, done.err
    assert "SQuAD 2.0: 30 of 90 training questions and 3 of 9 held-out questions have no answer" in done.err
    assert "no page was made" not in done.err, "pages of checkpoints"
    assert done.out.splitlines()[0].split() == ["seed", "f1", "(official)", "exact", "threshold"]
    results = read_json(workplace / "run" / SCORES)
    assert results["heldout"] == 9 and results["scores"]["exact"]["baseline"] == pytest.approx(1 / 3)
    assert results["scores"]["f1"]["mean"] == results["scores"]["exact"]["mean"] == 1.0
    for model in ("run", "run/export/hf"):
        answers = json.loads(call("predict", model, "dev.json").out)
        assert answers == {str(number): ["good", "bad", ""][number % 3] for number in range(9)}, "also the threshold"
    rows = [{"question": "film", "context": context} for context, _ in texts]
    Path("new.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = [json.loads(line)["prediction"] for line in call("predict", "run", "new.jsonl").out.splitlines()]
    assert found == ["good", "bad", ""]
    always = call("predict", "run", "new.jsonl", "--threshold", "1000", "--json").out.splitlines()[2]
    assert json.loads(always)["answer"]


def test_choices_are_answered(workplace: Path, call: Call) -> None:
    lines = ["premise,question,choice1,choice2,label", "film,cause,good,bad,1", "film,cause,bad,good,2"]
    for name, times in (("train", 48), ("val", 4)):
        Path(f"{name}.csv").write_text("\n".join([lines[0], *lines[1:] * times]) + "\n", encoding="utf-8")
        Path(f"{'dev' if name == 'val' else name}.tsv").unlink()
    done = call("finetune", "choice", "--model", "model", "--data", ".", "--out", "run", *FEW, "train.seed=1")
    assert done.code == 0, done.err
    results = read_json(workplace / "run" / SCORES)
    new = [line.rpartition(",")[0] for line in lines]
    Path("new.csv").write_text("\n".join([*new, "film,cause,good,"]) + "\n", encoding="utf-8")
    answered = call("predict", "run", "new.csv")
    found = [line.split(",")[4:5] for line in answered.out.splitlines()]
    assert (
        found[0] == ["prediction"] and found[3] == [] and "1 questions without a text and two choices" in answered.err
    )
    right = sum(each == [wanted] for each, wanted in zip(found[1:3], ("good", "good"), strict=True))
    assert right / 2 == results["scores"]["accuracy"]["mean"] == 1.0
    Path("new.json").write_text(
        json.dumps([dict(zip(new[0].split(","), line.split(","), strict=True)) for line in new[1:]])
    )
    sent = call("predict", "run", "new.json", "--submission", "hucopa")
    assert json.loads(Path(sent.out.strip()).read_text()) == [{"id": "0", "label": "0"}, {"id": "1", "label": "1"}]
    rows = call("predict", "run", "new.csv", "--text", "premise")
    assert rows.code == 2 and "--text and --pair have no effect" in rows.err


def squad(texts: list[tuple[str, str | None]]) -> dict[str, object]:
    """Questions about texts, each with its answer if it has one, as SQuAD 2.0 has them."""
    paragraphs = []
    for number, (context, answer) in enumerate(texts):
        answers = [] if answer is None else [{"text": answer, "answer_start": context.index(answer)}]
        asked = {"id": str(number), "question": "film", "answers": answers, "is_impossible": answer is None}
        paragraphs.append({"context": context, "qas": [asked]})
    return {"version": "v2.0", "data": [{"title": "films", "paragraphs": paragraphs}]}


@pytest.mark.parametrize(
    "section", [BertModelConfig, DistilBertModelConfig, ModernModelConfig], ids=lambda c: c.__name__
)
def test_a_run_of_ours_is_a_model(section: type[ModelConfig], workplace: Path) -> None:
    write_model(section(size="tiny"), workplace / "first")
    short = (*FEW, "train.phases.0.epochs=1")
    finetune(draft("sst2", Path("first"), Path(), short), Path("run"))
    for model in ("run", "run/train", "run/export"):
        assert draft("sst2", Path(model), Path(), short).recipe().train.init_from
    results = finetune(draft("sst2", Path("run"), Path(), short), Path("second"))
    assert results["heldout"] == 16


def test_predictions_are_those_that_were_scored(workplace: Path, call: Call) -> None:
    run = call("finetune", "sst2", "--model", "model", "--data", ".", "--out", "run", *FEW, "train.seed=1")
    assert run.code == 0, run.err
    accuracy = read_json(workplace / "run" / SCORES)["scores"]["accuracy"]["mean"]
    for model in ("run", "run/export/hf"):
        done = call("predict", model, "dev.tsv")
        assert done.code == 0, done.err
        head, *rows = [line.split("\t") for line in done.out.splitlines()]
        assert head == ["sentence", "label", "prediction", "probability"] and rows[1][0] == "a bad film ."
        right = [row[2] == label for row, label in zip(rows, ["positive", "negative"] * 8, strict=True)]
        assert sum(right) / 16 == accuracy == 1.0
    assert json.loads(call("predict", "run", "dev.tsv", "--json").out.splitlines()[0])["label"] == "positive"
    Path("other.tsv").write_text("text\tsentence\ngood\ta bad film .\n", encoding="utf-8")
    answered = call("predict", "run", "other.tsv").out.splitlines()[1]
    assert answered.split("\t")[2] == "negative", "the column that it was trained on"
    named = call("predict", "run", "other.tsv", "--text", "text").out.splitlines()[1]
    assert named.split("\t")[2] == "positive"
    Path("renamed.tsv").write_text("id\tblurb\n7\ta bad film .\n", encoding="utf-8")
    assert "negative" in call("predict", "run", "renamed.tsv").out, "a column of another name is guessed"
    Path("bare.tsv").write_text("7\ta bad film .\n", encoding="utf-8")
    assert call("predict", "run", "bare.tsv", "--text", "2").out.startswith("7\ta bad film .\tnegative\t")
    Path("test.tsv").write_text("index\tsentence\n0\ta bad film .\n1\ta good film .\n", encoding="utf-8")
    done = call("predict", "run", "test.tsv", "--submission", "glue", "--out", "sent")
    assert done.out == "sent/SST-2.tsv\n" and Path("sent/SST-2.tsv").read_text() == "index\tprediction\n0\t0\n1\t1\n"
    Path("test.txt").write_text("a bad film .\n", encoding="utf-8")
    assert call("predict", "run", "test.txt", "--out", "a.txt").out == "a.txt\n"
    assert Path("a.txt").read_text().split("\t")[0] == "negative"
    refused = call("predict", "run", "test.txt", "--json", "--out", "test.txt")
    assert refused.code == 2 and Path("test.txt").read_text() == "a bad film .\n", "the file that is read stays"
    for words in (("test.txt", "--text", "x"), ("test.txt", "--pair", "x"), ("dev.tsv", "--tag", "x")):
        done = call("predict", "run", *words)
        assert done.code == 2 and f"{words[1]} for {words[0]}, which has no column" in done.err


@each_row(
    ("words", "message"),
    [
        (("dev.tsv",), "neither classifies texts nor tags words nor answers questions"),
        (("nothing.tsv",), "there is no file nothing.tsv"),
        (("dev.tsv", "--out", "dev.tsv"), "--out dev.tsv is the file that is read"),
        (("dev.tsv", "--out", "dev.csv"), "the answers to dev.tsv are a .tsv"),
        (("-", "--pair", "x"), "--pair for lines of the input has no effect"),
        (("dev.tsv", "--submission", "glue", "--tag", "x"), "--tag with --submission has no effect"),
        (("dev.tsv", "--threshold", "1"), "--threshold has an effect only for a model that answers questions"),
    ],
)
def test_what_cannot_be_predicted_is_refused(words: tuple[str, ...], message: str, workplace: Path, call: Call) -> None:
    done = call("predict", "model", *words)
    assert done.code == 2 and message in done.err


def test_words_are_tagged(workplace: Path, call: Call) -> None:
    lines = "a DET\ngood ADJ\nfilm NOUN\n\nbad ADJ\nfilm NOUN\n\n"
    for name, times in (("train", 40), ("dev", 4)):
        Path(f"{name}.conll").write_text(lines * times, encoding="utf-8")
        Path(f"{name}.tsv").unlink()
    run = call("finetune", "pos", "--model", "model", "--data", ".", "--out", "run", *FEW, "train.phases.0.epochs=8")
    assert run.code == 0, run.err
    Path("new.txt").write_text("a bad film\n", encoding="utf-8")
    columns = call("predict", "run", "dev.conll")
    assert columns.out.splitlines() == lines.splitlines() * 4, "the tags are those of the file"
    Path("test.txt").write_text(lines, encoding="utf-8")
    assert call("predict", "run", "test.txt").out == lines, "a .txt with a word and a tag on each line"
    done = call("predict", "run", "new.txt")
    assert [line.split("\t")[:2] for line in done.out.splitlines() if line] == [
        ["a", "DET"], ["bad", "ADJ"], ["film", "NOUN"],
    ]  # fmt: skip


def test_several_labels_from_a_file_to_predictions(workplace: Path, call: Call) -> None:
    rows = [("a good film", "fine"), ("a bad film", "poor"), ("a good bad film", "fine;poor"), ("a film", "")] * 16
    Path("mine.csv").write_text(
        "text,label\n" + "".join(f"{text} {n},{label}\n" for n, (text, label) in enumerate(rows))
    )
    run = call("finetune", "classify", "--model", "model", "--data", "mine.csv", "--out", "run", *FEW)
    assert run.code == 0, run.err
    assert "train.objective.several = true: the column 'label' has text with ';' between labels" in run.err
    assert run.out.split()[:6] == ["seed", "f1_micro", "(official)", "f1_macro", "accuracy", "42"]
    done = call("predict", "run", "mine.csv", "--json")
    assert done.code == 0, done.err
    answer = json.loads(done.out.splitlines()[0])
    assert answer["labels"] == [label for label, p in answer["probabilities"].items() if p > 0.5]
    assert call("predict", "run/export/hf", "mine.csv").code == 0
