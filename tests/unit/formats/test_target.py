"""A folder that is there with all its files or not at all, whoever else writes it and whatever was killed before."""

from pathlib import Path

import pytest

from bertwright.core.errors import ArtifactError, DataError, RecipeError
from bertwright.formats.target import atomic_folder


def fill(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text("content")


def test_folder_appears_complete_and_leaves_no_leftovers(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "made") as draft:
        fill(draft)
        assert not (tmp_path / "made").exists()
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "made",
        "made/sub",
        "made/sub/file",
    ]


def test_failure_leaves_no_files_and_names_the_destination(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error, atomic_folder(tmp_path / "made") as draft:
        fill(draft)
        raise DataError(f"{draft / 'sub'} is bad")
    assert str(error.value) == f"{tmp_path / 'made' / 'sub'} is bad"
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    half = tmp_path / ".made.draft" / "made"
    half.mkdir(parents=True)
    (half / "old").write_text("half")
    with atomic_folder(tmp_path / "made") as draft:
        assert list(draft.iterdir()) == []
        fill(draft)
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["sub"]


def test_a_second_writer_is_refused_and_the_first_finishes(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "made") as draft:
        fill(draft)
        with pytest.raises(ArtifactError) as error, atomic_folder(tmp_path / "made"):
            pytest.fail("two writers at once")
        assert str(error.value) == (
            f"another process is writing {tmp_path / 'made'}. Wait until it has finished, or give another destination."
        )
    assert (tmp_path / "made" / "sub" / "file").read_text() == "content"


def test_what_was_finished_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="already exists"), atomic_folder(tmp_path / "made") as draft:
        fill(draft)
        (tmp_path / "made").mkdir()
        (tmp_path / "made" / "finished").write_text("by another")
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["made", "made/finished"]
