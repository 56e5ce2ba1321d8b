"""Records of completed tasks: a note of what each task wrote, with the SHA-256 of each file.

An attempt that continues in the draft of an earlier one trusts nothing: a damaged part is made again. The note is the
last file that a task writes: the hashes of the other files and the task's counts, sealed by its own hash.
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
    # No fsync: after a power cut the note does not match its seal, and the task is done again.
    write_json(note, {**content, "sha256": sha256_of(content)}, sync=False)


def is_done(note: Path) -> bool:
    """Whether the task of this note is done, and the files it wrote are unchanged."""
    try:
        hashes = _content(note)["files"]
        # Not by time or size: the previous attempt may have been killed while the disk was still writing.
        return all(sha256(note.parent / name) == expected for name, expected in hashes.items())
    except (ArtifactError, FileNotFoundError):
        return False


def read_done(note: Path) -> Any:
    """The facts in a note; `ArtifactError` if the note is damaged."""
    return _content(note)["facts"]


def _content(note: Path) -> dict[str, Any]:
    content: dict[str, Any] = read_json(note)
    seal = content.pop("sha256", None) if isinstance(content, dict) else None
    if seal != sha256_of(content):
        raise ArtifactError(f"{note} is damaged. Run the same command again: the files that it lists are made again.")
    return content
