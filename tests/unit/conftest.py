"""A small recipe for the modules above the stages, and a run folder that it trained."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import small_text
from tests.unit.storages import azure as azure
from tests.unit.storages import azurite as azurite
from tests.unit.storages import s3 as s3

from bertwright import Recipe, run
from bertwright.cli.conversion import ConvertOptions, convert
from bertwright.formats.format import Kind
from bertwright.formats.target import Target

SMALL = """
[corpus]
source = {{path = "{folder}/text.txt", lines = "sentences"}}
language = "en"
filter.enabled = false
workers = 1

[vocab]
size = 160
alphabet_coverage = 1.0

[examples]
passes = 2
heldout = 0.1
workers = 1

[model]
config = "{folder}/bert.json"

[[train.phases]]
length = 16
batch = 8
micro_batch = 4
learning_rate = 1e-3
steps = 3

[train]
heldout_sequences = 8
device = "cpu"
"""
MODEL = {
    "vocab_size": 160,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
}


SECOND_PHASE = """
[[train.phases]]
length = 32
batch = 8
learning_rate = 1e-3
steps = 2
"""


@pytest.fixture(scope="session")
def small_recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe whose stages take a second together."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "text.txt").write_text(small_text(120))
    (folder / "bert.json").write_text(json.dumps(MODEL))
    (folder / "small.toml").write_text(SMALL.format(folder=folder))
    return folder / "small.toml"


@pytest.fixture(scope="session")
def two_phases(small_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe of two phases, and beside it the run up to `examples` that it gives."""
    folder = tmp_path_factory.mktemp("imported")
    text = SMALL.format(folder=small_recipe.parent).replace("[train]", SECOND_PHASE + "\n[train]")
    (folder / "two.toml").write_text(text)
    run(Recipe.load(folder / "two.toml"), folder / "own", ["corpus", "vocab", "examples"])
    return folder / "two.toml"


@pytest.fixture(scope="session")
def _trained(small_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    run(Recipe.load(small_recipe), folder, ["corpus", "vocab", "examples", "train"])
    return folder


@pytest.fixture
def trained(_trained: Path, tmp_path: Path) -> Path:
    """A copy of a run folder of the small recipe, finished up to training, that a test may change."""
    return Path(shutil.copytree(_trained, tmp_path / "run"))


@pytest.fixture
def load(small_recipe: Path) -> Callable[..., Recipe]:
    """`load("vocab.size=150")`: the small recipe with overrides."""
    return lambda *overrides: Recipe.load(small_recipe, overrides)


@pytest.fixture(scope="session")
def converted(two_phases: Path) -> Callable[[Kind], list[Path]]:
    """`converted("lddl")`: the folders of the two phases of the run, written in that format."""
    made: dict[Kind, list[Path]] = {}

    def write(kind: Kind) -> list[Path]:
        if kind not in made:
            folder = two_phases.parent / kind
            convert(two_phases.parent / "own", folder, Target(kind), ConvertOptions(files=2))
            made[kind] = sorted(folder.iterdir())[-2:]
        return made[kind]

    return write
