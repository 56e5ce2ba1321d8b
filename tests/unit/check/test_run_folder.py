"""Which folders a run may use: nothing that is not ours is touched."""

from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright import Recipe, run
from bertwright.check.check_recipe import run_folder
from bertwright.check.verdict import Verdict
from bertwright.core.errors import DataError, RecipeError


def verdict(out: Path) -> Verdict:
    (found,) = run_folder(out)
    return found


@each_row("address", ["s3://bucket/runs/hu", "az://box/x", "https://a.b/c", "file:///tmp/x"])
def test_an_address_is_refused_as_path_and_as_text(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = address.replace(":///", "://")
    for written in (Path(address), address):
        with pytest.raises(RecipeError, match=f"^{place} is an address.*copy the folder afterwards"):
            run(Recipe.load("smoke"), written)
    assert verdict(Path(address)).level == "error" and not list(tmp_path.iterdir())


def test_new_and_empty_folders_are_fine(tmp_path: Path) -> None:
    assert verdict(tmp_path / "a" / "b").text == f"{tmp_path / 'a' / 'b'} is new"
    (tmp_path / ".DS_Store").touch()
    assert verdict(tmp_path).text == f"{tmp_path} is empty"


def test_someone_elses_folder_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "mine.txt").write_text("years of work")
    (tmp_path / "recipe.toml").write_text("mine")
    with pytest.raises(
        RecipeError, match=r"is not a run folder and contains corpus, recipe\.toml\. Choose another folder"
    ):
        run(Recipe.load("smoke"), tmp_path)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["corpus", "mine.txt", "recipe.toml"]
    assert (tmp_path / "recipe.toml").read_text() == "mine"


def test_a_stage_of_someone_else_in_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    (tmp_path / "vocab").mkdir()
    assert verdict(tmp_path).level == "ok"
    (tmp_path / "vocab" / "vocab.txt").write_text("[PAD]\n")
    found = verdict(tmp_path)
    assert found.level == "error" and "vocab was not made by this program: it has no manifest.json" in found.text


def test_runs_are_known_by_their_stages_also_as_copies(trained: Path) -> None:
    assert verdict(trained).text.endswith("finished: corpus, vocab, examples, train")
    (trained / ".lock").unlink()
    (trained / "train" / "manifest.json").unlink()
    assert verdict(trained).text.endswith("finished: corpus, vocab, examples")


def test_a_file_and_a_locked_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    assert verdict(file).text == f"cannot write {file}: it is a file."
    assert verdict(file / "run").text == f"cannot write {file / 'run'}: {file} is a file."
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write everywhere
    locked = verdict(tmp_path / "nowhere" / "run")
    assert locked.text.endswith(f"{tmp_path} cannot be written to.") and locked.kind is DataError
