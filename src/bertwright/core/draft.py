"""The folder in which an artifact is built, and its move to the final place.

A draft lies beside the final folder under the fingerprint of what is built, so that an interrupted build finds its own
draft again and no other. What is hidden in it (a leading dot) is scratch: never sealed, and removed at the end.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import time
from pathlib import Path

from bertwright.core.files import cannot_write, make_folder, remove_leftovers, sync_folder, write_atomic

_SECONDS = ".seconds"


def open_draft(out: Path, fingerprint: str) -> Path:
    """The draft for `out`: a new folder, or the one that an interrupted build left."""
    # Beside and not below the final place, on the same file system: a rename is then one step.
    return make_folder(out.with_name(f".{out.name}.{fingerprint[:12]}.draft"))


def aside(out: Path, fingerprint: str) -> Path:
    """Where the folder of another identity is kept: beside `out`, under its fingerprint."""
    return out.with_name(f"{out.name}.{fingerprint[:12]}")


def seconds_before(draft: Path) -> float:
    """Seconds that interrupted attempts spent in this draft; to be called once, when an attempt begins.

    The file `.seconds` is written when an attempt begins and says what was spent until then. However an attempt
    ended, it lasted from that file to the last one it wrote: a killed process can leave no other note. Attempts at the
    same time (ranks) count once.
    """
    note, spent = draft / _SECONDS, 0.0
    if note.is_file():
        # By the times of files: a process that was killed could not write down how long it ran.
        begun = last = note.stat().st_mtime
        for path in draft.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # another rank's temporary file
                last = max(last, path.stat().st_mtime)
        with contextlib.suppress(ValueError):  # a damaged note tells nothing
            before = float(note.read_text())
            spent = (before if 0 <= before < math.inf else 0.0) + last - begun
    write_atomic(note, f"{spent:.3f}".encode())
    return spent


def publish(draft: Path, out: Path, replaced: str | None) -> None:
    """Move the sealed draft to `out`; what lies there steps aside, under the fingerprint `replaced` if it has one."""
    try:
        if replaced is not None:
            os.rename(out, aside(out, replaced))
        elif out.exists():
            # Not an artifact, so nobody knows what it is worth to whom: it is put aside, never removed.
            os.rename(out, out.with_name(f"{out.name}.{time.time_ns()}.unfinished"))
        os.rename(draft, out)
        sync_folder(out.parent)
    except OSError as error:
        raise cannot_write(out, error) from error


def remove_scratch(out: Path) -> None:
    """Remove the scratch of an artifact that was published; what cannot be removed does no harm and stays.

    Where it was removed before, what else is hidden there is somebody else's, such as a `.git`, and stays too.
    """
    with contextlib.suppress(OSError):
        remove_leftovers(out)
    if not (out / _SECONDS).is_file():
        return
    # Only now: until the artifact is published an interrupted build goes on from its scratch.
    # The note of the seconds last, by which scratch is known to be there.
    for path in sorted(out.glob(".*"), key=lambda hidden: hidden.name == _SECONDS):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
