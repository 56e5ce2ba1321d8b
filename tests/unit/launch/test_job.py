"""What a job of a recipe is: its files."""

from pathlib import Path, PurePosixPath

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.launch.config import load_place
from bertwright.launch.job import Job, load_job
from bertwright.launch.target import describe
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
    written = Written.read(Path("smoke"), overrides, Recipe)
    assert Job(written, Recipe.from_values(written), PurePosixPath("runs/a")).files == {
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


def test_a_file_only_at_the_place_is_noted_as_unchecked() -> None:
    """The note on files that a place does not see says to give their path there."""
    there = ["vocab.size=", "vocab.file=/there/vocab.txt"]
    for kind, given in {"container": ('mounts={"/there"="vocab"}',), "kubeflow": (), "slurm": ("nodes=2",)}.items():
        note = describe(load_place(kind, "", given), load_job(Path("smoke"), there, None)).note
        assert note.endswith(
            "vocab.file = /there/vocab.txt is not on this machine, so it was not checked whether the network has a row "
            "for each entry of the vocabulary. The run checks this first."
        )
    there += ["model.size=", "model.config=/there/config.json"]
    both = load_job(Path("smoke"), there, None).unchecked
    assert "; model.config = /there/config.json is not on this machine, so it was not checked whether the n" in both
    assert not load_job(Path("smoke"), [], None).unchecked


def test_a_file_that_is_here_is_read_whatever_the_place(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"vocab_size": 7}')
    with pytest.raises(RecipeError, match="config.json does not describe a BERT: hidden_size"):
        load_job(Path("smoke"), ["model.size=", f"model.config={tmp_path}/config.json"], None)
    (tmp_path / "vocab").mkdir()
    with pytest.raises(RecipeError, match="vocab.file: .* is a folder, not a vocabulary"):
        load_job(Path("smoke"), ["vocab.size=", f"vocab.file={tmp_path}/vocab"], None)


def test_a_relative_path_that_is_not_here_is_a_mistake() -> None:
    with pytest.raises(RecipeError, match=r"vocab.file: no/vocab.txt cannot be read"):
        load_job(Path("smoke"), ["vocab.size=", "vocab.file=no/vocab.txt"], None)


def test_other_mistakes_are_found_without_the_files() -> None:
    with pytest.raises(RecipeError, match=r"train.phases.1.length: 9999 is longer than"):
        load_job(Path("smoke"), ["vocab.size=", "vocab.file=/there/v.txt", "train.phases.1.length=9999"], None)


@each_row("control", ["\n", "\r", "\x1b", "\x7f"])
def test_a_run_folder_is_a_name_for_one_line(control: str) -> None:
    """Scripts of schedulers name it in comments, where a line break would begin a command."""
    with pytest.raises(RecipeError, match="^--out "):
        load_job(Path("smoke"), [], Path(f"runs/a{control}touch b"))
    assert load_job(Path("smoke"), [], Path("runs/é b")).name == "é b"
