"""Writing a file whole or not at all when a library wants a path to write to."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bertwright.core.files import cannot_write


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
