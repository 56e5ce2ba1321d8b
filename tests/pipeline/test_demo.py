"""`bertwright demo`: what a newcomer sees, from an empty folder to what to type next."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pipeline.command import ENVIRONMENT, bertwright

from bertwright.pipeline.run_log import FILE

SMALL = (
    "corpus.source=sample-small",
    "vocab.size=400",
    "examples.passes=1",
    "train.phases.0.steps=4",
    "train.phases.0.batch=8",
    "train.phases.0.micro_batch=8",
    "train.expected=[]",
    "train.heldout_sequences=16",
)
NARROW = {"COLUMNS": "80"}
TITLES = ["Text", "Vocabulary", "Examples", "Training", "Test", "Export", "Report"]


def titles(told: str) -> list[str]:
    return re.findall(r"^\[\d/\d\] (\w+):", told, re.MULTILINE)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """The folder in which the demo was made, and what was printed to either stream."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    folder = tmp_path_factory.mktemp("empty")
    done = bertwright("demo", *SMALL, folder=folder, environment=NARROW)
    assert done.code == 0, done.err
    return folder, done.out, done.err


def test_each_wait_has_a_title_a_reason_and_a_result(told: tuple[Path, str, str]) -> None:
    folder, _, steps = told
    assert titles(steps) == TITLES
    assert steps.count(" s)\n") >= len(TITLES)
    assert re.search(
        r"after 4 of 4 steps: \d+ of 100 right\n        The foxes usually go out at dusk and \[\S+\] sleep", steps
    )
    assert max(map(len, steps.splitlines())) <= 80
    # What stages say to those who know them is in the run's log.
    assert "unigram" not in steps and "unigram" in (folder / "bertwright-demo" / FILE).read_text()


def test_it_ends_with_answers_and_what_to_type_next(told: tuple[Path, str, str]) -> None:
    folder, end, _ = told
    assert "Of 16 sentences that it has not read" in end and end.count("____") == 3
    assert re.search(r"^      \S+ \d+\s%, \S+ \d+\s%, \S+ \d+\s%", end, re.MULTILINE)
    assert (folder / "bertwright-demo" / "report.html").is_file()
    assert "open bertwright-demo/report.html" in end
    for command in ("serve bertwright-demo", "watch bertwright-demo", "init"):
        assert f"\n  bertwright {command} " in end
    assert "http" not in end, "nothing stays open without a terminal"


def test_the_same_command_does_only_what_is_missing(told: tuple[Path, str, str]) -> None:
    folder, end, _ = told
    metrics = (folder / "bertwright-demo" / "train" / "metrics.jsonl").read_bytes()
    done = bertwright("demo", *SMALL, folder=folder, environment=NARROW)
    assert done.code == 0 and done.out == end
    assert titles(done.err) == TITLES and " ".join(done.err.split()).count("(made before)") == 6
    assert (folder / "bertwright-demo" / "train" / "metrics.jsonl").read_bytes() == metrics
    other = bertwright("demo", *SMALL, "train.phases.0.learning_rate=1e-4", folder=folder)
    assert other.code == 4 and "learning_rate" in other.err and "Traceback" not in other.err


def test_programs_get_the_same_as_json(told: tuple[Path, str, str]) -> None:
    folder, _, _ = told
    done = bertwright("demo", *SMALL, "--json", folder=folder)
    facts = json.loads(done.out)
    assert facts["folder"] == "bertwright-demo" and len(facts["answers"]) == 16
    assert 0 <= facts["accuracy"] <= 1 and len(facts["commands"]) == 3


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    run = bertwright("run", "demo", *SMALL, "--until", "examples", "--out", "here", folder=tmp_path)
    assert run.code == 0, run.err
    done = bertwright("demo", *SMALL, "--out", "here", folder=tmp_path)
    assert done.code == 0, done.err
    steps = re.split(r"^\[", done.err, flags=re.MULTILINE)[1:]
    assert ["made before)" in step for step in steps] == [*3 * [True], *(len(steps) - 3) * [False]]


def test_the_recipe_is_that_of_the_package(tmp_path: Path) -> None:
    """Whatever a file in the current folder is called."""
    (tmp_path / "demo").write_text("no recipe")
    done = bertwright("demo", *SMALL, "train.phases.0.no_such_key=1", folder=tmp_path)
    assert done.code == 2 and "no_such_key" in done.err and not (tmp_path / "bertwright-demo").exists()


def test_a_folder_that_cannot_be_used_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "bertwright-demo").write_text("a file")
    done = bertwright("demo", *SMALL, folder=tmp_path)
    assert done.code == 3 and done.err.startswith("bertwright: cannot write bertwright-demo")


def test_without_transformers_it_has_all_but_the_export(tmp_path: Path) -> None:
    """A wheel without extras."""
    program = "import sys; sys.modules['transformers'] = None; from bertwright.cli import main; main()"
    command = [sys.executable, "-c", program, "demo", *SMALL, "evaluate.cloze=[]"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert titles(done.stderr) == [title for title in TITLES if title != "Export"]
    assert "pip install 'bertwright[hf]'" in done.stdout and "____" not in done.stdout
    assert "is not finished" not in (tmp_path / "bertwright-demo" / "report.html").read_text(encoding="utf-8")
    for _ in range(2):  # with it, what is missing is made
        more = bertwright("demo", *SMALL, "evaluate.cloze=[]", folder=tmp_path)
        assert more.code == 0 and titles(more.err) == TITLES, more.err
