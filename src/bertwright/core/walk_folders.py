"""Walks through folders and follows links to folders, which `Path.rglob` silently skips."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def folders_below(folder: Path) -> Iterator[Path]:
    """Yield `folder` and each folder below it, once: those that only links lead to come after all others.

    `OSError` for a folder that exists, but cannot be read.
    """
    seen, linked = set[tuple[int, int]](), [folder]
    for start in linked:
        for place, names, _ in os.walk(start, onerror=_refuse):
            status = os.stat(place)
            here = status.st_dev, status.st_ino
            # A link may lead to a folder that contains it, or to one that has been yielded.
            if here in seen:
                names.clear()
                continue
            seen.add(here)
            yield Path(place)
            names.sort()
            linked += [path for name in names if (path := Path(place, name)).is_symlink()]


def _refuse(error: OSError) -> None:
    # `os.walk` would skip the folder. One that is gone may be a checkpoint of a training that runs.
    if not isinstance(error, FileNotFoundError):
        raise error
