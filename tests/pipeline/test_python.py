"""The package used from Python: scripts, standard input and notebooks, mistakes, and what a run returns."""

import subprocess
import sys
from pathlib import Path
from typing import NotRequired, get_origin, get_type_hints

import pytest
from tests.pipeline.command import ENVIRONMENT, RECIPES, ROOT
from tests.pipeline.test_documentation import blocks

import bertwright
from bertwright import SILENT, Recipe, RunFolder, run
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.pipeline.shapes import MetricsRow, Scores, Summary

(SNIPPET,) = blocks(ROOT / "README.md", "python")


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    (tmp_path / "recipes").symlink_to(RECIPES)
    return tmp_path


@pytest.mark.parametrize("way", ["file", "standard input", "notebook"])
def test_the_python_of_readme_runs(way: str, workplace: Path) -> None:
    (workplace / "mine.py").write_text(SNIPPET, encoding="utf-8")
    command = {"file": ["mine.py"], "standard input": ["-"], "notebook": ["-m", "IPython", "-c", SNIPPET]}[way]
    if way == "notebook":
        pytest.importorskip("IPython", reason="IPython is not installed: pip install ipython")
    done = subprocess.run(
        [sys.executable, *command],
        cwd=workplace,
        env={**ENVIRONMENT, "IPYTHONDIR": str(workplace / "ipython")},
        input=SNIPPET if way == "standard input" else "",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (workplace / "runs" / "mine" / "examples" / "manifest.json").is_file()
    assert done.stdout.count("'entries': 1500") == 1, "no worker has run the script once more"


def test_mistakes_in_python_read_like_those_of_a_file(tmp_path: Path) -> None:
    values = {
        "corpus": {"source": "a.txt", "langauge": "hu"},
        "model": {"size": "mini"},
        "train": {"phases": [{"length": 128, "batch": 8, "learning_rate": 1e-3}]},
    }
    with pytest.raises(RecipeError) as caught:
        Recipe(**values)
    assert str(caught.value).splitlines() == [
        "Recipe: corpus.language: this key is required.",
        "Recipe: corpus.langauge: unknown key 'langauge'; did you mean 'language'?",
        "Recipe: train.phases.0: give exactly one of steps, epochs, samples, tokens; given: none",
    ]


def test_a_section_alone_says_its_own_name() -> None:
    from bertwright.optim.config import AdamWConfig

    with pytest.raises(RecipeError, match=r"^AdamWConfig: weight_decoy: unknown key 'weight_decoy'; did you mean"):
        AdamWConfig(weight_decoy=0.1)


def test_a_run_hands_back_metrics_scores_and_summary(finished: Path) -> None:
    folder = RunFolder(finished)
    assert [row["total_steps"] for row in folder.metrics] == list(range(1, 19))
    for shape, given in ((MetricsRow, folder.metrics[-1]), (Scores, folder.scores), (Summary, folder.summary)):
        hints = get_type_hints(shape, include_extras=True)
        assert {name for name, hint in hints.items() if get_origin(hint) is not NotRequired} <= given.keys()
    assert folder.summary["mlm_loss"] == folder.scores["mlm_loss"]


def test_what_is_not_measured_yet_names_the_verb_that_does(tmp_path: Path) -> None:
    for part, verb in (("metrics", "train"), ("scores", "evaluate"), ("summary", "report")):
        with pytest.raises(ArtifactError, match=f"Make it first: bertwright {verb} RECIPE --out"):
            getattr(RunFolder(tmp_path), part)


def test_the_public_names_are_listed_before_they_are_imported() -> None:
    listed = subprocess.run(
        [sys.executable, "-c", "import bertwright; print(*dir(bertwright))"], capture_output=True, text=True, check=True
    )
    assert set(listed.stdout.split()) == set(bertwright.__all__) and {"Recipe", "run"} <= set(bertwright.__all__)
    assert all(getattr(bertwright, name) is not None for name in bertwright.__all__)


def test_a_name_and_texts_are_enough_and_progress_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = run("smoke", stages="corpus")
    said = capsys.readouterr()
    assert folder.path == tmp_path / "runs" / "smoke" and said.out == ""
    assert "corpus: reading sample-small" in said.err and "same text as an earlier one" in said.err
    assert RunFolder("runs/smoke").artifact("corpus").manifest == folder.artifact("corpus").manifest
    Recipe.load("smoke").write("mine.toml")
    assert run("mine.toml", stages=[]).path == tmp_path / "runs" / "mine"
    silent = run(Recipe.load("smoke"), "runs/silent", ["corpus"], log=SILENT)
    assert silent.artifact("corpus").fingerprint == folder.artifact("corpus").fingerprint
    assert capsys.readouterr().err == ""


def test_a_loaded_recipe_needs_a_run_folder() -> None:
    with pytest.raises(RecipeError, match=r'^out is missing: .* Give the run folder, such as "runs/mine"\.$'):
        run(Recipe.load("smoke"))
