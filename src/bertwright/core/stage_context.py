"""Where a stage works and with which helpers: the same for every stage, whatever its inputs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bertwright.core.log import SILENT, Log

if TYPE_CHECKING:  # training has no task lists and does not load these modules
    from bertwright.core.tasks import Executor
    from bertwright.core.work_split import WorkSplit

STAGE_NAMES = ("corpus", "vocab", "examples", "train", "evaluate", "export")
"""The stages that build an artifact, in pipeline order."""


@dataclass(frozen=True)
class StageContext:
    """What the pipeline passes to a stage besides its settings and inputs. None of it changes the result."""

    out: Path
    """The folder of the artifact."""
    log: Log = SILENT
    executor: Executor | None = None
    """Runs the task lists; None: processes on this machine."""
    share: WorkSplit | None = None
    """The part of this process when several build the stage together; None: it works alone."""
