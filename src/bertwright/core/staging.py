"""The folder in which an artifact is built, and its move to the final place.

A draft is next to the final folder and named after the fingerprint of what is built, so an interrupted build finds its
own draft again and no other. Hidden entries (with a leading dot) are scratch: never sealed, and removed at the end.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import time
from glob import escape
from pathlib import Path

from bertwright.core.files import cannot_write, make_folder, remove_leftovers, sync_folder, write_atomic

_SECONDS = ".seconds"


def open_draft(out: Path, fingerprint: str) -> Path:
    """The draft for `out`: a new folder, or the one that an interrupted build left."""
    # Next to the final place, not below it, and on the same file system, so that one rename moves it.
    return make_folder(out.with_name(f".{out.name}.{fingerprint[:12]}.draft"))


def drafts(out: Path, but: str = "") -> list[Path]:
    """The drafts for `out` that interrupted builds left, without that of the fingerprint `but`."""
    ours = f".{out.name}.{but[:12]}.draft"
    found = out.parent.glob(f".{escape(out.name)}.*.draft")
    return sorted(path for path in found if path.is_dir() and path.name != ours)


def is_draft(folder: Path) -> bool:
    """Whether the name of `folder` is that of a draft, of an artifact or of a checkpoint."""
    return folder.name.startswith(".") and folder.name.endswith(".draft")


def archive_path(out: Path, fingerprint: str) -> Path:
    """Where the folder of another identity is kept: next to `out`, under its fingerprint."""
    return out.with_name(f"{out.name}.{fingerprint[:12]}")


def seconds_before(draft: Path) -> float:
    """Seconds that interrupted attempts spent in this draft; call it once, when an attempt begins.

    The file `.seconds` is written when an attempt begins and records the time spent until then. However an attempt
    ends, it counts from that file to the last file it wrote, because a killed process can leave no other note.
    Concurrent attempts (ranks) count once.
    """
    note, spent = draft / _SECONDS, 0.0
    if note.is_file():
        # Measured by file times: a killed process could not record how long it ran.
        begun = last = note.stat().st_mtime
        for path in draft.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # another rank's temporary file
                last = max(last, path.stat().st_mtime)
        with contextlib.suppress(ValueError):  # a damaged note is ignored
            before = float(note.read_text())
            spent = (before if 0 <= before < math.inf else 0.0) + last - begun
    write_atomic(note, f"{spent:.3f}".encode())
    return spent


def publish(draft: Path, out: Path, replaced: str | None) -> None:
    """Move the sealed draft to `out`; a folder already there moves aside, under the fingerprint `replaced` if any."""
    try:
        if replaced is not None:
            os.rename(out, archive_path(out, replaced))
        elif out.exists():
            # Not an artifact, so its value is unknown: it is moved aside, never removed.
            os.rename(out, out.with_name(f"{out.name}.{time.time_ns()}.unfinished"))
        os.rename(draft, out)
        sync_folder(out.parent)
    except OSError as error:
        raise cannot_write(out, error) from error


def remove_scratch(out: Path) -> None:
    """Remove the scratch files of a published artifact; those that cannot be removed are harmless and stay.

    Once scratch has been removed, other hidden entries, such as a `.git`, belong to someone else and stay too.
    """
    with contextlib.suppress(OSError):
        remove_leftovers(out)
    if not (out / _SECONDS).is_file():
        return
    # Only now: until the artifact is published, an interrupted build continues from its scratch.
    # `.seconds` goes last, because it marks that scratch is still there.
    for path in sorted(out.glob(".*"), key=lambda hidden: hidden.name == _SECONDS):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
