"""Writing a folder of several files whole or not at all."""

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
    """A hidden folder to be filled inside; then it is renamed to the new folder `path`.

    It lies in a hidden sibling of `path` that one process holds at a time; what a killed one left there is removed
    first. When the body fails it is removed, and its errors name `path` instead. `RecipeError` when `path` exists,
    `ArtifactError` while another process writes it.
    """
    _refuse_existing(path)
    workplace = make_folder(path.with_name(f".{path.name}.draft"))
    draft = workplace / path.name
    try:
        # Without it a second conversion to the same place moved the finished result of the first aside.
        with FolderLock(
            workplace, busy=f"another process is writing {path}. Wait for it, or give another destination."
        ):
            try:
                # A process that was killed leaves one.
                shutil.rmtree(draft, ignore_errors=True)
                _refuse_existing(path)  # it may have been finished meanwhile
                yield make_folder(draft)
                _publish(draft, path)
            finally:
                shutil.rmtree(workplace, ignore_errors=True)
    except BertwrightError as error:
        # The hidden folder is gone when the message is read.
        error.args = tuple(str(text).replace(str(draft), str(path)) for text in error.args)
        raise


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise RecipeError(f"{path} is there already. Move it away, or give another destination.")


def _publish(draft: Path, path: Path) -> None:
    try:
        os.rename(draft, path)  # an error where there is something in `path`: it is not replaced
        # A name is on the disk only when its folder is.
        sync_folder(path.parent)
    except OSError as error:
        _refuse_existing(path)
        raise cannot_write(path, error) from error
