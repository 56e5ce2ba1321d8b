"""This machine, by one process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from bertwright.core.config import Section
from bertwright.core.log import Log
from bertwright.launch.environment import Environment, exports
from bertwright.launch.foreground import run_in_order
from bertwright.launch.job import RECIPE, Job
from bertwright.launch.target import Description


class LocalPlace(Section):
    """This machine: the command runs here, until it is done."""

    kind: Literal["local"] = "local"
    """Names this target."""
    overrides: tuple[str, ...] = ()
    """Overrides that this machine asks of any recipe; those of the command line come after them."""
    environment: Environment = Field(default_factory=dict)
    """Variables for the command."""

    def describe(self, job: Job) -> Description:
        """As `Target.describe`."""
        return Description({RECIPE: job.recipe}, [*exports(self.environment), job.line("run")])

    def submit(self, job: Job, folder: Path, log: Log) -> Mapping[str, str]:
        """As `Submitter.submit`; `SystemExit` where the command fails."""
        run_in_order([job.line("run")], self.environment)
        return {}
