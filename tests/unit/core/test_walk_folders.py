"""Folders below a folder: links to others are followed, and nothing is met twice or forever."""

import os
from pathlib import Path

import pytest

from bertwright.core.files import folders_below


def test_links_to_folders_are_followed_once(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    (root / "b" / "c").mkdir(parents=True)
    (other / "d").mkdir(parents=True)
    (root / "file").touch()
    for link, target in {"a": other, "e": root / "b", "b/f": root, "g": tmp_path / "gone", "h": other / "d"}.items():
        (root / link).symlink_to(target)
    (other / "d" / "back").symlink_to(root)
    assert [path.relative_to(root).as_posix() for path in folders_below(root)] == [".", "b", "b/c", "a", "a/d"]
    assert list(folders_below(root / "a")) == [root / "a", root / "a" / "d", root / "a/d/back", *(
        root / "a/d/back" / name for name in ("b", "b/c")
    )]  # fmt: skip


def test_a_folder_that_is_gone_has_none(tmp_path: Path) -> None:
    assert not list(folders_below(tmp_path / "none"))


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_folder_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0)
    with pytest.raises(PermissionError):
        list(folders_below(tmp_path))
