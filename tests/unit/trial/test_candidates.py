"""What the fastest candidate changes in the recipe: its own engine keeps its settings, and what others drop is said."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.cli.bench import _write_fastest
from bertwright.cli.options import Run
from bertwright.core.errors import RecipeError
from bertwright.trial.attempt import Tried
from bertwright.trial.autotune import changes_of, engines_to_try, keys_of
from bertwright.trial.search import Candidate, Trial


@each_row(
    ("engine", "ranks"),
    [
        ('{kind="zero", reduction="bf16"}', 1),
        ('{kind="ddp", reduction="fp16", bucket_mb=5.0}', 2),
        ('{kind="deepspeed", stage=3}', 2),
    ],
)
def test_an_engine_of_the_recipe_keeps_its_other_settings(engine: str, ranks: int, tmp_path: Path) -> None:
    given = [f"train.engine={engine}", 'optim={kind="adamw"}']
    tried = Tried(Recipe.load("smoke", given), phase=0, ranks=ranks, steps=1, limit=10.0)
    own = tried.recipe.train.engine
    candidate = Candidate(own.kind, False, 16)
    if own.kind != "deepspeed":
        assert tried.recipe_for(candidate).train.engine == own
    assert own.kind in engines_to_try(tried, None) or own.kind == "deepspeed"
    assert keys_of(tried, candidate).keys() == {"train.phases.0.micro_batch", "train.checkpoint_activations"}
    file = tmp_path / "mine.toml"
    if own.kind != "deepspeed":
        _write_fastest(file, Run(Path("smoke"), given), Trial(candidate, "trained", 2, 1.0), tried)
        assert Recipe.load(file).train.engine == own
        assert "# changed: train.phases.0.micro_batch from 0 to 16\n" in file.read_text()


def test_what_another_engine_drops_is_said() -> None:
    given = ['train.engine={kind="ddp", reduction="bf16"}', "train.checkpoint_activations=true"]
    tried = Tried(Recipe.load("smoke", given), phase=0, ranks=2, steps=1, limit=10.0)
    assert changes_of(tried, Candidate("fsdp", False, 16)) == [
        "train.phases.0.micro_batch from 0 to 16",
        'train.engine from ddp reduction="bf16" to fsdp',
        "train.checkpoint_activations from true to false",
    ]
    assert engines_to_try(replace(tried, ranks=1), None) == ["ddp"]
    with pytest.raises(RecipeError, match="with 1 ranks and this recipe there are ddp"):
        engines_to_try(replace(tried, ranks=1), ["zero"])
