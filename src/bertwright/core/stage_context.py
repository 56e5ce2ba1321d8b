"""Where a stage works and with what: the same for every stage, whatever it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bertwright.core.log import SILENT, Log

if TYPE_CHECKING:  # training has no task lists, and loads nothing of them
    from bertwright.core.tasks import Executor
    from bertwright.core.work_split import WorkSplit

STAGE_NAMES = ("corpus", "vocab", "examples", "train", "evaluate", "export")
"""Those that leave an artifact, in the order the text travels."""


@dataclass(frozen=True)
class StageContext:
    """What the pipeline hands to a stage beside its settings and its inputs. None of it changes the result."""

    out: Path
    """The folder of the artifact."""
    log: Log = SILENT
    executor: Executor | None = None
    """Does the task lists; None: processes on this machine."""
    share: WorkSplit | None = None
    """Which of the processes that make the stage together this one is; None: there is no other."""
