"""The package used from Python: scripts, standard input and notebooks, mistakes, and what a run returns."""

import subprocess
import sys
from pathlib import Path
from typing import NotRequired, get_origin, get_type_hints

import pytest
from tests.pipeline.command import ENVIRONMENT, RECIPES, ROOT
from tests.pipeline.test_documentation import blocks

from bertwright import Recipe, RunFolder
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
