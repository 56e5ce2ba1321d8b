"""Every shipped recipe is valid, says how to start it, and trains to its end at a tiny scale."""

import shlex
from pathlib import Path

import pytest
from tests.pipeline.command import RECIPES
from tests.pipeline.conftest import Call

from bertwright import Recipe, run

SHIPPED = sorted(RECIPES.glob("*.toml"))
TINY = (
    "corpus.source=sample-small",
    "corpus.language=hu",
    'corpus.filter.languages=["hu", "en"]',
    "corpus.workers=1",
    "vocab.size=800",
    "examples.passes=1",
    "examples.heldout=0.2",
    "examples.workers=1",
    "model.size=tiny",
    "train.heldout_sequences=4",
    "train.device=cpu",
    "train.precision=fp32",
    "train.attention=auto",
)
each_recipe = pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)


def tiny(path: Path) -> Recipe:
    """The recipe with its phases, schedules, optimizer and text settings, but little of everything."""
    overrides = list(TINY)
    for i, phase in enumerate(Recipe.load(path).train.phases):
        length = next(name for name in ("steps", "epochs", "samples", "tokens") if getattr(phase, name) is not None)
        budget = {"steps": 2, "epochs": 0.01, "samples": 8, "tokens": 9000}[length]
        settings = {"batch": 4, "micro_batch": 2, "micro_tokens": 0, "learning_rate": 1e-3, length: budget}
        overrides += [f"train.phases.{i}.{key}={value}" for key, value in settings.items()]
    return Recipe.load(path, overrides)


@each_recipe
def test_it_is_valid(path: Path, tmp_path: Path, call: Call) -> None:
    here = ["model.size=tiny", "train.device=cpu", "train.precision=fp32", "train.attention=auto"]
    done = call("check", path, "corpus.source=sample", *here, "--out", tmp_path / "run", "--json")
    assert done.code == 0, done.out + done.err


@each_recipe
def test_its_head_names_a_command_that_parses(path: Path, call: Call) -> None:
    head = path.read_text().partition("\n\n")[0]
    assert all(line.startswith("#") for line in head.splitlines())
    assert head.partition("\n")[0].endswith("."), "`bertwright recipes` shows the first line"
    for fact in ("command", "hardware", "time", "expect"):
        assert f"#   {fact} " in head, f"{path.name} does not say its {fact}"
    line = next(line for line in head.splitlines() if line.startswith("#   command "))
    words = shlex.split(line[line.index("bertwright ") :].rstrip(") "))
    assert words[:3] == ["bertwright", "run", path.stem]
    overrides = [word for word in words[3:] if "=" in word]
    Recipe.load(path, overrides)
    assert [word for word in words[3:] if "=" not in word][::2] in ([], ["--out"])


@each_recipe
def test_it_trains_to_its_end(path: Path, tmp_path: Path) -> None:
    recipe = tiny(path)
    folder = run(recipe, tmp_path / "run", ["corpus", "vocab", "examples", "train"])
    trained = folder.artifact("train")
    assert trained.counts["steps"] >= 2 * len(recipe.train.phases)
    lines = (folder.path / "train" / "metrics.jsonl").read_text().splitlines()
    assert len(lines) >= len(recipe.train.phases)
