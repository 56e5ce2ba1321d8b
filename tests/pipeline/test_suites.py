"""The suites `glue` and `hulu`: every task from files in the official layout to a score, models in one table."""

import json
from pathlib import Path

import pytest
from tests.pipeline.conftest import Call
from tests.pipeline.test_finetune import SEEN, write_model
from tests.rows import each_row

from bertwright.cli.suite_table import suite_lines
from bertwright.core.files import read_json
from bertwright.finetune.seeds import Results, SeedScores, Spread
from bertwright.finetune.suites import PUBLISHED, SUITES, SuiteResults, find_data
from bertwright.model.bert.config import BertModelConfig

GOOD, BAD = "a good film .", 'a "bad film .'  # a quotation mark that nothing closes: in these files it means nothing
PAIRED = {
    # GLUE's folder: the header, a row of two equal texts, a row of two other ones.
    "MRPC": ("\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", "1\t70\t80\t{0}\t{0}", "0\t80\t90\t{0}\t{1}"),
    "QQP": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "7\t1\t2\t{0}\t{0}\t1", "8\t1\t3\t{0}\t{1}\t0"),
    "STS-B": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
        "0\tmain\tx\t2012\t1\tnone\tnone\t{0}\t{0}\t5.000",
        "1\tmain\tx\t2012\t2\tnone\tnone\t{0}\t{1}\t0.500",
    ),
    "MNLI": (
        "index\tpromptID\tpairID\tgenre\tsentence1\tsentence2\tlabel1\tgold_label",
        "0\t1\t1c\tx\t{0}\t{0}\tneutral\tentailment",
        "1\t1\t1c\tx\t{0}\t{1}\tneutral\tcontradiction",
    ),
    "QNLI": ("index\tquestion\tsentence\tlabel", "0\t{0}\t{0}\tentailment", "1\t{0}\t{1}\tnot_entailment"),
    "RTE": ("index\tsentence1\tsentence2\tlabel", "0\t{0}\t{0}\tentailment", "1\t{0}\t{1}\tnot_entailment"),
    "WNLI": ("index\tsentence1\tsentence2\tlabel", "0\t{0}\t{0}\t1", "1\t{0}\t{1}\t0"),
    "CoLA": ("", "gj04\t1\t\t{0}", "gj04\t0\t*\t{1}"),
    "SST-2": ("sentence\tlabel", "{0} \t1", "{1} \t0"),
}


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, and files of all tasks of GLUE in the layout of its archive."""
    monkeypatch.chdir(tmp_path)
    write_model(BertModelConfig(size="tiny"), tmp_path / "one")
    for folder, (head, *rows) in PAIRED.items():
        (tmp_path / "GLUE" / folder).mkdir(parents=True)
        for name, times in (("train", 8), ("dev_matched" if folder == "MNLI" else "dev", 2)):
            lines = [*([head] if head else []), *(row.format(GOOD, BAD) for row in rows)] + [
                row.format(BAD, GOOD) if "{0}\t{1}" in row else row.format(GOOD, BAD) for row in rows
            ] * times
            (tmp_path / "GLUE" / folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.heavy
def test_every_task_of_glue_has_a_score(workplace: Path, call: Call) -> None:
    words = ("evaluate", "one", "--suite", "glue", "--data", "GLUE", "--out", "out")
    done = call(*words)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].split() == [*SUITES["glue"], "mean"] and max(map(len, lines[:11])) <= 80
    assert lines[1].split() == ["MCC", "acc", "F1", "r", "F1", "acc", "acc", "acc", "acc"]
    assert lines[2].split()[:4] == ["constant", "answer", "0.0", "50.0"]
    assert lines[3].split()[0] == "one" and len(lines[3].split()) == 11
    assert lines[4].split() == [
        "BERT-Tiny",
        "*test",
        "0.0",
        "83.2",
        "81.1",
        "74.3",
        "62.2",
        "70.2",
        "81.5",
        "57.2",
        "63.7",
    ]
    results = read_json(workplace / "out" / "suite.json")
    assert list(results["models"]["one"]) == list(SUITES["glue"]) and not results["missing"]
    averaged = [results["models"]["one"][task] for task in SUITES["glue"] if task != "wnli"]
    means = [each["scores"][each["metric"]]["mean"] for each in averaged]
    assert results["means"]["one"] == pytest.approx(sum(means) / 8)
    again = call(*words, "--json")
    assert again.err.count("nothing to do") == 9 and json.loads(again.out)["models"] == results["models"]


@each_row(
    ("words", "message"),
    [
        (("--suite", "glue", "--data", "nowhere"), "--data nowhere is no folder"),
        (("--suite", "hulu", "--data", "GLUE"), "GLUE has data of none of its tasks"),
        (("one/../one", "--suite", "glue", "--data", "GLUE"), "two models are called one"),
        (("--suite", "quick", "--seeds", "2"), "--seeds with --suite quick has no effect"),
        (("--seeds", "2"), "--seeds without --suite has no effect"),
    ],
)
def test_a_suite_that_cannot_run_is_refused(words: tuple[str, ...], message: str, workplace: Path, call: Call) -> None:
    done = call("evaluate", "one", *words)
    assert done.code == 2 and message in done.err


@each_row(
    ("task", "folder"),
    [
        ("sst2", "SST-2"),
        ("stsb", "sts_b"),
        ("hucola", "hu_cola"),
        ("hucb", "HuCommitmentBank/data"),
        ("hurte", "HuRTE"),
    ],
)
def test_data_is_found_by_the_name_of_its_folder(task: str, folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir(parents=True)
    assert find_data(task, tmp_path) is None, "without a training file"
    (tmp_path / folder / "constraints.txt").write_text("", encoding="utf-8")
    assert find_data(task, tmp_path) is None, "another word that contains train"
    (tmp_path / folder / "x_Train.json").write_text("[]", encoding="utf-8")
    assert find_data(task, tmp_path) == tmp_path / folder


def of_task(metric: str, mean: float, collapsed: int = 0) -> Results:
    runs = [SeedScores(seed=seed, folder="", scores={}, collapsed=False) for seed in (1, 2)]
    spread = Spread(mean=mean, deviation=0.012, least=0.0, greatest=1.0, baseline=0.5)
    return Results(
        task="", metric=metric, runs=runs, scores={metric: spread}, collapsed=collapsed, learning_rate=1.0, heldout=9
    )


def test_what_a_table_leaves_out_is_said() -> None:
    models = {
        "first": {"cola": of_task("matthews", 0.25), "wnli": of_task("accuracy", 0.5)},
        "of-a-very-long-name-9000": {"cola": of_task("matthews", 0.0, 2), "wnli": of_task("accuracy", 0.75)},
    }
    results = SuiteResults(
        suite="glue",
        tasks=["cola", "wnli"],
        missing={"rte": "no folder"},
        models=models,
        means={"first": 0.25, "of-a-very-long-name-9000": 0.0},
    )
    lines = list(suite_lines(results))
    assert [line.split() for line in lines[3:7]] == [
        ["first", "25.0", "50.0", "25.0"], ["±", "1.2", "1.2"],
        ["…ry-long-name-9000", "0.0", "75.0", "0.0"], ["±", "1.2", "1.2"],
    ]  # fmt: skip
    text = "\n".join(lines)
    assert "Collapsed runs, with one answer to everything: of-a-very-long-name-9000 on cola: 2 of 2." in text
    assert "The mean leaves WNLI out" in text and "rte is left out: no folder." in text
    assert "* published, not measured here" in text


def test_published_scores_are_of_tasks_of_the_suite() -> None:
    for suite, tasks in SUITES.items():
        for each in PUBLISHED[suite]:
            assert set(each.scores) <= set(tasks) and each.split in ("dev", "test")


def test_the_vocabulary_has_the_words_of_the_files() -> None:
    assert {*GOOD.split(), "bad"} <= set(SEEN)
