"""This machine, with one process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from bertwright.core.config import Section
from bertwright.core.log import Log
from bertwright.launch.foreground import run_in_order
from bertwright.launch.job import RECIPE, Job
from bertwright.launch.options import Environment, exports
from bertwright.launch.target import Description


class LocalPlace(Section):
    """This machine: the command runs here in the foreground."""

    kind: Literal["local"] = "local"
    """Names this target."""
    overrides: tuple[str, ...] = ()
    """Overrides applied to every recipe on this machine; those on the command line are applied after them."""
    environment: Environment = Field(default_factory=dict)
    """Environment variables of the command."""

    def describe(self, job: Job) -> Description:
        """As `Target.describe`."""
        return Description({RECIPE: job.recipe}, [*exports(self.environment), job.line("run")])

    def submit(self, job: Job, folder: Path, log: Log) -> Mapping[str, str]:
        """As `Submitter.submit`; raises `SystemExit` if the command fails."""
        run_in_order([job.line("run")], self.environment)
        return {}
