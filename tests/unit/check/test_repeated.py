"""A warning about a branch that would read what its donor has read, and no warning if anything differs."""

from pathlib import Path
from typing import Any

from tests.rows import each_row
from tests.unit.contradictions.test_folders import artifact

from bertwright import Recipe
from bertwright.check.recipe.advice import repeated_reading
from bertwright.core.artifact import open_artifact, seal
from bertwright.core.config import Identity, result_settings
from bertwright.core.files import make_folder

NAME = "wiki-mini"


def recipe(start: Path | None, *overrides: str) -> Recipe:
    given = [f"train.init_from={start}", "train.init_embeddings=random"] if start else []
    return Recipe.load(NAME, [*given, *overrides], given=False)


def donor(run: Path, folder: str = "train/checkpoints/step-000000050", **inputs: str) -> Path:
    """A training of the recipe as it is, in its run folder."""
    run.mkdir()
    made = recipe(None)
    made.write(run / "recipe.toml")
    path = make_folder(run / folder)
    stage = "train" if folder == "train" else "checkpoint"
    sections = result_settings({"train": made.train}, extendable=False)
    seal(path, Identity(stage, 1, sections, {"examples": "e" * 64, **inputs}), {}, 0.0)
    return path


def warned(start: Path, out: Path, *overrides: str) -> list[Any]:
    return list(repeated_reading(recipe(start, *overrides), out, ["examples", "train"]))


@each_row("folder", ["train/checkpoints/step-000000050", "train"])
def test_a_branch_with_the_seed_and_data_of_its_donor(tmp_path: Path, folder: str) -> None:
    start = donor(tmp_path / "run", folder)
    (verdict,) = warned(start, tmp_path / "branch", "train.phases.0.learning_rate=1e-5", "train.phases.0.batch=7")
    assert verdict.level == "warning" and verdict.about == "train.seed"
    assert f"42 is also the seed of train.init_from ({start}), which has the same data" in verdict.text
    assert verdict.remedy == "Set it to another number, such as train.seed=43."


@each_row(
    "other",
    [
        "train.seed=43",
        "train.phases.0.length=32",
        "train.phases.0.document_range=[0, 0.5]",
        "examples.seed=7",
        "corpus.source=elsewhere.xml",
        "train.init_layers=[1, 2]",
    ],
)
def test_what_reads_anything_else_is_not_warned_of(tmp_path: Path, other: str) -> None:
    assert warned(donor(tmp_path / "run"), tmp_path / "branch", other) == []


def test_a_branch_that_has_begun_cannot_change_its_seed(tmp_path: Path) -> None:
    start, out = donor(tmp_path / "run"), tmp_path / "branch"
    make_folder(out / "train" / "checkpoints" / "step-000000004")
    assert warned(start, out) == []
    assert list(repeated_reading(recipe(start), tmp_path / "other", ["examples"])) == [], "nothing is trained"


def test_finished_examples_are_compared_themselves(tmp_path: Path) -> None:
    """Also if the donor has more phases, and its examples more sets of plans."""
    run, out = tmp_path / "run", tmp_path / "branch"
    artifact(out / "examples", "examples", examples={"seed": 1})
    made = artifact(tmp_path / "same" / "examples", "examples", examples={"seed": 1})
    sealed = artifact(tmp_path / "made" / "examples", "examples", examples={"seed": 1}, train={"phases": [16, 32]})
    start = donor(run)
    assert warned(start, out) == [], "nothing is known of those of the donor"
    sealed.rename(run / "examples")
    assert len(warned(start, out)) == 1
    again = donor(tmp_path / "again", examples=open_artifact(made).fingerprint)
    assert len(warned(again, out)) == 1
    artifact(tmp_path / "third" / "examples", "examples", examples={"seed": 2})
    assert warned(start, tmp_path / "third") == []


def test_a_checkpoint_without_its_run_gives_no_warning(tmp_path: Path) -> None:
    start = donor(tmp_path / "run")
    (tmp_path / "run" / "recipe.toml").unlink()
    assert warned(start, tmp_path / "branch") == []
    assert warned(tmp_path / "gone", tmp_path / "branch") == []
