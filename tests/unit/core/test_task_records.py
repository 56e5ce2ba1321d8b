"""A task is done when its note and all it wrote are as they were."""

from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.errors import ArtifactError
from bertwright.core.task_records import is_done, mark_done, read_done


def note(folder: Path) -> Path:
    (folder / "sub").mkdir()
    (folder / "a").write_bytes(b"alpha")
    (folder / "sub" / "b").write_bytes(b"beta")
    mark_done(folder / "task.json", [folder / "a", folder / "sub" / "b"], {"count": 2})
    return folder / "task.json"


def test_a_completed_task_is_done_and_has_its_counts(tmp_path: Path) -> None:
    assert not is_done(tmp_path / "task.json")
    path = note(tmp_path)
    assert is_done(path) and read_done(path) == {"count": 2}


@each_row("name", ["a", "sub/b", "task.json"])
def test_a_flipped_bit_a_shortened_and_a_missing_file_are_not(name: str, tmp_path: Path) -> None:
    path, damaged = note(tmp_path), tmp_path / name
    data = damaged.read_bytes()
    for at in range(len(data)):
        damaged.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert not is_done(path), f"byte {at}"
    damaged.write_bytes(data[:-1])
    assert not is_done(path) or name == "task.json", "its last byte is a line feed"
    damaged.unlink()
    assert not is_done(path)


def test_the_facts_of_a_damaged_note_are_not_read(tmp_path: Path) -> None:
    path = note(tmp_path)
    path.write_text(path.read_text().replace('"count": 2', '"count": 3'))
    with pytest.raises(ArtifactError, match=r"task.json is damaged. Run the same command again"):
        read_done(path)
