"""Presets: named sets of keys in a recipe's file."""

from pathlib import Path

import pytest

from bertwright import Recipe
from bertwright.core.errors import RecipeError

FILE = """
preset = "fp32"
model.size = "tiny"
[corpus]
source = "sample"
language = "hu"
[[train.phases]]
length = 64
batch = 8
learning_rate = 1e-3
steps = 10
[presets.fp32]
[presets.bf16]
train.precision = "bf16"
train.phases.0.batch = 16
[presets.wrong]
train.phases.0.bacth = 16
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "mine.toml").write_text(FILE)
    return tmp_path / "mine.toml"


def test_the_command_line_overrides_a_preset_and_it_the_file(file: Path) -> None:
    plain, low = Recipe.load(file), Recipe.load(file, ["preset=bf16"])
    assert (plain.train.precision.kind, plain.train.phases[0].batch) == ("auto", 8)
    assert (low.train.precision.kind, low.train.phases[0].batch) == ("bf16", 16)
    assert Recipe.load(file, ["train.phases.0.batch=4", "preset=bf16"]).train.phases[0].batch == 4
    assert Recipe.load(file, ["preset="]) == plain


def test_the_resolved_recipe_has_the_values_alone(file: Path, tmp_path: Path) -> None:
    Recipe.load(file, ["preset=bf16"]).write(tmp_path / "resolved.toml")
    assert "presets" not in (tmp_path / "resolved.toml").read_text()
    assert Recipe.load(tmp_path / "resolved.toml") == Recipe.load(file, ["preset=bf16"])


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("preset=bf17", "preset: there is no preset 'bf17'; did you mean 'bf16'?"),
        ("preset=zzz", "preset: there is no preset 'zzz'; the file has fp32, bf16, wrong."),
        ("preset=wrong", "mine.toml:17: train.phases.0.bacth: unknown key 'bacth'; did you mean 'batch'"),
    ],
)
def test_a_malformed_preset_is_an_error(file: Path, override: str, says: str) -> None:
    with pytest.raises(RecipeError) as caught:
        Recipe.load(file, [override])
    assert says in str(caught.value)


def test_a_recipe_without_presets_has_none_to_choose(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="there is no preset 'bf16'; the file has none"):
        Recipe.load("demo", ["preset=bf16"])
    (tmp_path / "mine.toml").write_text("presets = 3\n" + FILE.replace("presets.", "other."))
    with pytest.raises(RecipeError, match=r"presets: must be a table of tables; write \[presets.NAME\]"):
        Recipe.load(tmp_path / "mine.toml")


@pytest.mark.parametrize("name", ['["bf16"]', "3", "{}", "false"])
def test_a_preset_name_that_is_no_text_is_an_error(file: Path, name: str) -> None:
    file.write_text(FILE.replace('preset = "fp32"', f"preset = {name}"))
    with pytest.raises(RecipeError, match=r"mine.toml: preset: must be the name of a preset in quotes; got "):
        Recipe.load(file)


def test_values_in_python_have_no_presets() -> None:
    recipe = Recipe.load("smoke")
    with pytest.raises(RecipeError, match="preset and presets are read in files"):
        Recipe(**{**dict(recipe), "preset": "bf16"})
