"""What the draft of a stage records: which tasks are done, and the versions of third-party packages it is built with.

An attempt that continues in the draft of an earlier one trusts nothing: a damaged part is made again. The note is the
last file that a task writes: the hashes of the other files and the task's counts, sealed by its own hash. Versions are
recorded in the manifest, but not part of the identity, so an upgrade triggers no rebuild. However, a single artifact is
never built with two versions.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_json, sha256, sha256_of, write_json
from bertwright.core.log import Log


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


_NOTE = ".libraries.json"


def record_libraries(
    draft: Path, names: Sequence[str], log: Log, ranks: int = 1, plugins: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The installed versions by name, and those of `plugins`; the folders in a draft begun with other versions are
    removed, which is logged.

    With several ranks such a draft is an `ArtifactError` instead: other ranks may be working in it.
    """
    now, note = {**{name: version(name) for name in names}, **(plugins or {})}, draft / _NOTE
    before: dict[str, str] = (read_done(note) if is_done(note) else {}) if note.is_file() else now
    if before != now:
        others = [name for name in now if before.get(name) != now[name]]
        changed = ", ".join(f"{name} {before.get(name)} -> {now[name]}" for name in others)
        if ranks > 1:
            raise ArtifactError(
                f"{draft} was started with other versions of libraries ({changed}), maybe by another of the {ranks} "
                "ranks. Install the same versions on all machines; if they are already the same, remove that folder "
                "to start again."
            )
        log.say(f"{draft.name} was started with other versions of libraries ({changed}) and is started again")
        for path in [path for path in draft.iterdir() if path.is_dir()]:
            shutil.rmtree(path)
    mark_done(note, facts=now)
    return now
