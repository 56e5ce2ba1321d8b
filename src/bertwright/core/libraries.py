"""The versions of third-party packages that affect an artifact's content.

The manifest records them, but the identity does not include them, so an upgrade triggers no rebuild. However, a single
artifact is never built with two versions.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from bertwright.core.errors import ArtifactError
from bertwright.core.log import Log
from bertwright.core.task_records import is_done, mark_done, read_done

_NOTE = ".libraries.json"


def libraries(
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
