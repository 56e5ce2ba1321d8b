"""Folders outside the run folder that a recipe writes to: a place that keeps nothing else would lose them."""

from __future__ import annotations

import os
import re
from pathlib import PurePosixPath

from bertwright.core.dotted import texts
from bertwright.launch.job import Job, listed, of_this_machine

_WRITTEN = re.compile(r"corpus\.cache_dir|train\.observers\.\d+\.folder")
"""Keys of folders that a run writes to; it reads everything else that a recipe names."""


def unpersisted_outputs(job: Job, kept: str) -> str:
    """Return a note naming the absolute folders that the run writes to and that are not below `kept`, the folder of the
    place that remains; "" if there are none."""
    named = {key: text for key, text in texts(job.values) if _WRITTEN.fullmatch(key)}
    lost = {
        key: path
        for key, path in of_this_machine(named).items()
        if not PurePosixPath(os.path.normpath(path)).is_relative_to(kept)
    }
    if not lost:
        return ""
    return (
        f"{listed(lost)}: where the run works this is no folder of your machine. It may not be allowed to write there, "
        "and what it writes is lost. Leave the key out."
    )
