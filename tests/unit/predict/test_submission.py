"""Submissions have the names, labels and numbers that the servers of GLUE and HuLU take."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import write_json
from bertwright.examples.labelled.config import glue
from bertwright.examples.problems import Problems
from bertwright.finetune.tasks import TASKS
from bertwright.predict.source import Answer, Chunk
from bertwright.predict.submission import find_submission, write_submission

NLI = ["entailment", "not_entailment"]
MNLI = ["entailment", "neutral", "contradiction"]


def submitted(task: str, file: str, labels: tuple[str, ...], answers: list[Any], out: Path) -> tuple[str, str]:
    """The name and the content of a submission."""
    found: list[Answer | None] = [Answer({"prediction": each}, [], {}) for each in answers]
    wanted = find_submission(task, out, Path(file))
    path = write_submission(wanted, labels, [(Chunk(answers, None), [*found, None])], Problems(), out)
    return path.name, path.read_text(encoding="utf-8")


@each_row(
    ("task", "file", "name", "written"),
    [
        ("cola", "test.tsv", "CoLA.tsv", ["0", "1"]),
        ("sst2", "test.tsv", "SST-2.tsv", ["0", "1"]),
        ("mrpc", "test.tsv", "MRPC.tsv", ["0", "1"]),
        ("qqp", "test.tsv", "QQP.tsv", ["0", "1"]),
        ("wnli", "test.tsv", "WNLI.tsv", ["0", "1"]),
        ("qnli", "test.tsv", "QNLI.tsv", NLI),
        ("rte", "test.tsv", "RTE.tsv", NLI),
        ("mnli", "test_matched.tsv", "MNLI-m.tsv", MNLI),
        ("mnli", "test_mismatched.tsv", "MNLI-mm.tsv", MNLI),
        ("mnli-mm", "diagnostic.tsv", "AX.tsv", MNLI),
    ],
)
def test_glue_gets_its_spelling(task: Any, file: str, name: str, written: list[str], tmp_path: Path) -> None:
    labels = glue(task).labels
    content = "".join(f"{number}\t{label}\n" for number, label in enumerate(written))
    assert submitted(task, file, labels, list(labels), tmp_path) == (name, f"index\tprediction\n{content}")


def test_similarities_are_cut(tmp_path: Path) -> None:
    found = submitted("stsb", "test.tsv", ("score",), [-0.2, 2.34567, 5.5], tmp_path)
    assert found == ("STS-B.tsv", "index\tprediction\n0\t0.000\n1\t2.346\n2\t5.000\n")


@each_row(
    ("task", "name", "written"),
    [
        ("hucola", "cola_predicted_labels.json", ["0", "1"]),
        ("hurte", "rte_predicted_labels.json", ["0", "1"]),
        ("huwnli", "wnli_predicted_labels.json", ["0", "1"]),
        ("hucb", "cb_predicted_labels.json", ["entailment", "contradiction", "neutral"]),
    ],
)
def test_hulu_gets_its_objects(task: str, name: str, written: list[str], tmp_path: Path) -> None:
    labels = TASKS[task].labels
    found, content = submitted(task, "test.json", labels, list(labels), tmp_path)
    assert found == name
    assert json.loads(content) == [{"id": str(number), "label": label} for number, label in enumerate(written)]


def test_choices_are_numbers_from_0(tmp_path: Path) -> None:
    answers: list[Answer | None] = [Answer({"prediction": "so"}, [], {"choice": choice}) for choice in (1, 0)]
    answered = [(Chunk([1, 2], None), answers)]
    wanted = find_submission("hucola", tmp_path, Path("test.json"))
    path = write_submission(wanted, ("choice",), answered, Problems(), tmp_path)
    assert [row["label"] for row in json.loads(path.read_text())] == ["1", "0"]


def test_the_task_is_that_of_the_run(tmp_path: Path) -> None:
    run = tmp_path / "out" / "learning_rate-2e-5" / "seed-1"
    (run / "export" / "hf").mkdir(parents=True)
    (run / "recipe.toml").touch()
    write_json(tmp_path / "out" / "scores.json", {"task": "rte"})
    for folder in (run, run / "export" / "hf"):
        assert find_submission("glue", folder, Path("test.tsv")).name == "RTE.tsv"


@each_row(
    ("suite", "file", "message"),
    [
        ("glu", "test.tsv", "--submission glu: give glue or hulu, or the name of a task"),
        ("glue", "test.tsv", "does not say which task it was trained for"),
        ("ner", "test.conll", "no server takes answers of ner"),
        ("mnli", "test.tsv", "is none of MNLI's test files"),
    ],
)
def test_what_no_server_takes_is_refused(suite: str, file: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        find_submission(suite, tmp_path, Path(file))
    assert message in str(caught.value)


def test_a_submission_with_gaps_is_refused(tmp_path: Path) -> None:
    problems = Problems()
    problems.add("records without a text", "line 7")
    with pytest.raises(DataError, match="1 records without a text, the first in line 7, so a submission would lack"):
        write_submission(find_submission("rte", tmp_path, Path("test.tsv")), NLI, [], problems, tmp_path)
