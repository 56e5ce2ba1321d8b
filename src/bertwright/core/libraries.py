"""The versions of the packages that an artifact's content depends on besides our own code.

They are noted in the manifest and are no part of the identity: an upgrade rebuilds nothing. But one artifact is never
made with two versions.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from bertwright.core.done import is_done, mark_done, read_done
from bertwright.core.errors import ArtifactError
from bertwright.core.log import Log

_NOTE = ".libraries.json"


def libraries(draft: Path, names: Sequence[str], log: Log, ranks: int = 1) -> dict[str, str]:
    """The installed versions by name; what a draft holds that was begun with others is removed, and that is said.

    Where several ranks share the work it is an `ArtifactError`: the others may be at work in that draft.
    """
    now, note = {name: version(name) for name in names}, draft / _NOTE
    before: dict[str, str] = (read_done(note) if is_done(note) else {}) if note.is_file() else now
    if before != now:
        others = [name for name in now if before.get(name) != now[name]]
        changed = ", ".join(f"{name} {before.get(name)} -> {now[name]}" for name in others)
        if ranks > 1:
            raise ArtifactError(
                f"{draft} was begun with other libraries ({changed}), maybe by another of the {ranks} ranks. Install "
                "the same versions on all machines; where they are the same by now, remove that folder to begin anew."
            )
        log.say(f"{draft.name} was begun with other libraries ({changed}) and is begun anew")
        for path in [path for path in draft.iterdir() if path.is_dir()]:
            shutil.rmtree(path)
    mark_done(note, facts=now)
    return now
