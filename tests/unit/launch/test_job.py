"""What a job of a recipe is: its files."""

from pathlib import Path, PurePosixPath

import pytest

from bertwright.core.errors import RecipeError
from bertwright.launch.job import Job, load_job
from bertwright.recipe import Recipe
from bertwright.recipe_file import Written


def test_the_files_of_a_recipe_are_those_that_its_sections_mark() -> None:
    """So a new key that names files is among them by itself."""
    overrides = [
        'corpus.source=["~/a.bz2", {path="b.bz2", name="b"}, "s3://box/c.bz2", "sample"]',
        "corpus.wikitext.templates=t.toml",
        'corpus.contamination=["test.txt", "~/other.txt"]',
        "vocab.file=v.txt",
        "vocab.size=",
        "train.init_from=~/before",
        "train.phases.0.data=hdf5",
        "train.phases.0.quarantine=true",
        'train.objective={kind="distillation", teacher="../teacher"}',
        "corpus.cache_dir=elsewhere",
    ]
    written = Written.read(Path("smoke"), overrides)
    assert Job(written, Recipe.validated(written), PurePosixPath("runs/a")).files == {
        "corpus.source.0": "~/a.bz2",
        "corpus.source.1.path": "b.bz2",
        "corpus.wikitext.templates": "t.toml",
        "corpus.contamination.0": "test.txt",
        "corpus.contamination.1": "~/other.txt",
        "vocab.file": "v.txt",
        "train.init_from": "~/before",
        "train.phases.0.data": "hdf5",
        "train.objective.teacher": "../teacher",
    }


@pytest.mark.parametrize("control", ["\n", "\r", "\x1b", "\x7f"])
def test_a_run_folder_is_a_name_for_one_line(control: str) -> None:
    """Scripts of schedulers name it in comments, where a line break would begin a command."""
    with pytest.raises(RecipeError, match="^--out "):
        load_job(Path("smoke"), [], Path(f"runs/a{control}touch b"))
    assert load_job(Path("smoke"), [], Path("runs/é b")).name == "é b"
