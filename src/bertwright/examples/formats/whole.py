"""Writing a file whole or not at all when a library wants a path to write to, and a folder of several files."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bertwright.core.draft import publish
from bertwright.core.errors import BertwrightError, RecipeError
from bertwright.core.files import cannot_write, make_folder


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary sibling of `path` to be written and closed inside; then it is synced and renamed to `path`.

    When the body fails it is removed and `path` is as before. `DataError` when the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        yield temporary
        with open(temporary, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A hidden sibling of the new folder `path` to be filled inside; then it is renamed to `path`.

    When the body fails it is removed, and its errors name `path` instead. `RecipeError` when `path` exists.
    """
    if path.exists():
        raise RecipeError(f"{path} is there already. Move it away, or give another destination.")
    draft = make_folder(path.with_name(f".{path.name}.{secrets.token_hex(4)}.draft"))
    try:
        yield draft
        publish(draft, path, None)
    except BertwrightError as error:
        error.args = tuple(str(each).replace(str(draft), str(path)) for each in error.args)
        raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
