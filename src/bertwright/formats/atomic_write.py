"""Atomic writing of a folder with several files: it appears complete or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bertwright.core.errors import BertwrightError, RecipeError
from bertwright.core.files import cannot_write, make_folder, sync_folder
from bertwright.core.lock import FolderLock


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a hidden folder to fill; on success it is renamed to the new folder `path`.

    The hidden folder is in a hidden sibling of `path`, which one process at a time holds; leftovers of a killed process
    are removed first. If the body fails, the hidden folder is removed and the errors name `path` instead. Raises
    `RecipeError` when `path` exists, and `ArtifactError` while another process writes it.
    """
    _refuse_existing(path)
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
                _refuse_existing(path)  # another process may have finished it in the meantime
                yield make_folder(draft)
                _publish(draft, path)
            finally:
                shutil.rmtree(workplace, ignore_errors=True)
    except BertwrightError as error:
        # The hidden folder no longer exists when the user reads the message.
        error.args = tuple(str(text).replace(str(draft), str(path)) for text in error.args)
        raise


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise RecipeError(f"{path} already exists. Move it away, or give another destination.")


def _publish(draft: Path, path: Path) -> None:
    try:
        os.rename(draft, path)  # fails if `path` is not empty, and never replaces it
        # The new name is on the disk only once its parent folder is synced.
        sync_folder(path.parent)
    except OSError as error:
        _refuse_existing(path)
        raise cannot_write(path, error) from error
