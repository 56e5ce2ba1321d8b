"""Tasks that are done: what a task wrote, with the SHA-256 of each file beside it.

An attempt that goes on in the draft of another one takes nothing on trust: a part that is damaged is made again. The
last file that a task writes is its note: the hashes of the others and what was counted, sealed by a hash of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_json, sha256, sha256_of, write_json


def mark_done(note: Path, files: Iterable[Path] = (), facts: Any = None) -> None:
    """Write the note of a task that wrote `files` and counted `facts` (JSON)."""
    hashes = {os.path.relpath(path, note.parent): sha256(path) for path in files}
    content = {"files": hashes, "facts": facts}
    # No fsync: a power cut leaves a note that does not fit its seal, and the task is done again.
    write_json(note, {**content, "sha256": sha256_of(content)}, sync=False)


def is_done(note: Path) -> bool:
    """Whether the task of this note is done, and everything it wrote is what it wrote then."""
    try:
        hashes = _content(note)["files"]
        # Not by time or size: the attempt before may have been killed while the disk still wrote.
        return all(sha256(note.parent / name) == expected for name, expected in hashes.items())
    except (ArtifactError, FileNotFoundError):
        return False


def read_done(note: Path) -> Any:
    """The facts in a note; a damaged one is an `ArtifactError`."""
    return _content(note)["facts"]


def _content(note: Path) -> dict[str, Any]:
    content: dict[str, Any] = read_json(note)
    seal = content.pop("sha256", None) if isinstance(content, dict) else None
    if seal != sha256_of(content):
        raise ArtifactError(f"{note} is damaged. Run the same command again: what it tells of is made again.")
    return content
