"""Recipes are known by their names, without hiding a file."""

from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.core.errors import RecipeError
from bertwright.shipped import find_recipe, shipped, titles


def test_every_shipped_recipe_is_found_by_name_and_has_a_title() -> None:
    for name, path in shipped().items():
        assert find_recipe(name) == path and Recipe.load(name) == Recipe.load(path)
        assert titles()[name].endswith(".") and not titles()[name].startswith("#")


def test_a_file_or_folder_of_that_name_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smoke").mkdir()
    (tmp_path / "demo").write_text("[corpus]\n")
    assert find_recipe("demo") == Path("demo") and find_recipe("smoke") == shipped()["smoke"]


@each_row(
    ("word", "says"),
    [
        ("dmeo", "'dmeo' is neither a file nor a recipe that comes with bertwright. Did you mean demo?"),
        ("xyz", "Give a TOML file, or one of azure-glue, demo, hu-mini, "),
        (
            "recipes/demo.toml",
            "there is no file recipes/demo.toml. That recipe comes with bertwright: give only its name, ",
        ),
        ("other/mine.toml", "cannot read the recipe other/mine.toml"),
    ],
)
def test_what_is_not_there_names_the_nearest(
    word: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError) as caught:
        Recipe.load(word)
    assert says in str(caught.value)
