"""The target of a conversion: its format, the names of its files and how examples are distributed over them.

Its folder appears complete or not at all.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from bertwright.core.errors import BertwrightError, RecipeError
from bertwright.core.files import cannot_write, make_folder, sync_folder
from bertwright.core.work_split import FolderLock
from bertwright.formats.format import FileNumber, Format, Kind, Split
from bertwright.formats.known import format_of


@dataclass(frozen=True)
class Target:
    """The format to write, and its options."""

    kind: Kind
    length: int | None = None
    """Length of padded examples, in tokens; None: that of the source."""
    predictions: int | None = None
    """Number of predictions that padded examples have room for; None: that of the source."""
    compress: bool = False
    """Compress entire files, if the format supports it."""

    @property
    def format(self) -> Format:
        """The format of examples; must not be used for a kind that has only token documents."""
        return format_of(self.kind)


def kind_of(name: str) -> Kind:
    """Return the format called `name`. Raises `RecipeError` if there is no such format."""
    kinds: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
    if name not in kinds:
        raise RecipeError(f"no format {name!r} can be written; choose one of {', '.join(kinds)}.")
    return kinds[name]


def file_name(target: Target, name: str, split: Split, number: int, files: int) -> str:
    """Return the name of file `number` of `files`, as the readers of the format expect it."""
    return target.format.file_name(FileNumber(name, split, number, files, target.compress))


def folder_name(target: Target, split: Split) -> str:
    """Return the folder of a split inside that of its set; empty if the format keeps its splits in one folder."""
    # LDDL's loader takes all files below a folder, so no split is inside another one.
    return {"training": "train", "test": "test"}[split] if target.format.split_folders else ""


def shares(target: Target, examples: int, files: int) -> list[int]:
    """Return where each of `files` files begins among the examples, and where the last one ends; no file is empty.

    If the loader requires files of n and of n + 1 examples (`unequal_files`), a single file or files of equal size do
    not work. Then there are at least two files, and if all would have the same size, the last example is left out.
    """
    files = min(files, examples)
    if target.format.unequal_files and examples > 2:
        files = max(2, min(files, examples // 2))
        # LDDL's loader refuses files that all have the same size.
        examples -= examples % files == 0
    return [examples * number // files for number in range(files + 1)] if files else [0]


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a hidden folder to fill; on success it is renamed to the new folder `path`.

    The hidden folder is in a hidden sibling of `path`, which one process at a time holds; leftovers of a killed process
    are removed first. If the body fails, the hidden folder is removed and the errors name `path` instead. Raises
    `RecipeError` when `path` exists, and `ArtifactError` while another process writes it.
    """
    refuse_existing(path)
    workplace = make_folder(path.with_name(f".{path.name}.draft"))
    draft = workplace / path.name
    try:
        # Without the lock, a second conversion to the same place moved the finished result of the first aside.
        with FolderLock(
            workplace,
            busy=f"another process is writing {path}. Wait until it has finished, or give another destination.",
        ):
            try:
                # A killed process leaves its draft behind.
                shutil.rmtree(draft, ignore_errors=True)
                refuse_existing(path)  # another process may have finished it in the meantime
                yield make_folder(draft)
                _publish(draft, path)
            finally:
                shutil.rmtree(workplace, ignore_errors=True)
    except BertwrightError as error:
        # The hidden folder no longer exists when the user reads the message.
        error.args = tuple(str(text).replace(str(draft), str(path)) for text in error.args)
        raise


def refuse_existing(path: Path) -> None:
    """Raise `RecipeError` if there is something at a path that is to be created."""
    if path.exists():
        raise RecipeError(f"{path} already exists. Move it away, or give another destination.")


def _publish(draft: Path, path: Path) -> None:
    try:
        os.rename(draft, path)  # fails if `path` is not empty, and never replaces it
        # The new name is on the disk only once its parent folder is synced.
        sync_folder(path.parent)
    except OSError as error:
        refuse_existing(path)
        raise cannot_write(path, error) from error
