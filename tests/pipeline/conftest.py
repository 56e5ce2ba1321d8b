"""Finished runs shared by several tests, and a recipe small enough to run hundreds of times."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pipeline.command import Done
from tests.warm import _runtimes as _runtimes
from tests.warm import warm_runtimes as warm_runtimes

from bertwright import Recipe, run
from bertwright.cli import main

Call = Callable[..., Done]

SMALL = """
[corpus]
source = "sample-small"
language = "hu"
filter.languages = ["hu", "en"]
workers = 1

[vocab]
size = 400

[examples]
passes = 1
heldout = 0.2
workers = 1

[model]
config = {config}
dropout = 0.1

[optim]
kind = "lamb"

[[train.phases]]
length = 16
batch = 8
learning_rate = 4e-3
schedule = "constant"
steps = 12

[[train.phases]]
length = 32
batch = 4
micro_batch = 2
learning_rate = 2e-3
schedule = "poly"
steps = 6

[train]
heldout_sequences = 16
checkpoint_every = 2
evaluate_every = 6
log_every = 1
keep_checkpoints = 2
device = "cpu"
"""
MODEL = {
    "vocab_size": 400,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
}


@pytest.fixture(scope="session")
def small_recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-phase recipe whose training takes a fraction of a second."""
    folder = tmp_path_factory.mktemp("recipe")
    (folder / "bert.json").write_text(json.dumps(MODEL))
    (folder / "small.toml").write_text(SMALL.format(config=json.dumps(str(folder / "bert.json"))))
    return folder / "small.toml"


@pytest.fixture(scope="session")
def small_examples(small_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """`small_examples(folder)`: a run folder of the small recipe, finished up to the stage examples."""
    made = tmp_path_factory.mktemp("small") / "run"
    run(Recipe.load(small_recipe), made, ["corpus", "vocab", "examples"])
    return lambda folder: Path(shutil.copytree(made, folder))


@pytest.fixture(scope="session")
def finished(small_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run folder of the small recipe; tests must not modify it."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    run(Recipe.load(small_recipe), folder)
    return folder


@pytest.fixture
def few_items(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """`few_items()`: the suites of exams have a few items, which take seconds."""

    def make() -> None:
        from bertwright.exams import quick, wiki

        monkeypatch.setattr(quick, "ITEMS", 6)
        monkeypatch.setattr(quick, "TEXTS", 12)
        monkeypatch.setattr(wiki.make_exam, "__defaults__", (6,))

    return make


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """`call("run", recipe, ...)`: runs the command line in this process; an uncaught exception fails the test."""

    def run_main(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["bertwright", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as exited:
            main()
        out, err = capsys.readouterr()
        return Done(int(exited.value.code or 0), out, err)

    return run_main
