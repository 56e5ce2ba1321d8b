"""Ranks on this machine, or on several that are logged in to one by one, started by torchrun."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from bertwright.core.config import Section
from bertwright.core.log import Log
from bertwright.launch.environment import Environment, exports
from bertwright.launch.foreground import run_in_order
from bertwright.launch.job import RECIPE, Job
from bertwright.launch.target import Description


class TorchrunPlace(Section):
    """torchrun: everything but training by one process, training by several."""

    kind: Literal["torchrun"] = "torchrun"
    """Names this target."""
    nodes: int = Field(1, ge=1)
    """Machines that train together. On each of several the command is given once."""
    ranks: int = Field(2, ge=1)
    """Ranks on each machine: one for each GPU, or for each socket."""
    rendezvous: str = Field("", validate_default=True)
    """Where ranks of several machines meet, such as "node1:29500": a name that all of them know, and a free port."""
    restarts: int = Field(3, ge=0)
    """How often torchrun starts all ranks again after one was lost (times)."""
    overrides: tuple[str, ...] = ()
    """Overrides that these machines ask of any recipe; those of the command line come after them."""
    environment: Environment = Field(default_factory=dict)
    """Variables for the commands."""

    @field_validator("rendezvous")
    @classmethod
    def _meet_somewhere(cls, rendezvous: str, info: ValidationInfo) -> str:
        alone = info.data.get("nodes", 1) == 1 and not rendezvous
        if not alone and not re.fullmatch(r"[^:\s]+:\d+", rendezvous):
            raise ValueError('several nodes need a name and a port that all of them reach, such as "node1:29500"')
        return rendezvous

    def describe(self, job: Job) -> Description:
        """As `Target.describe`; `RecipeError` for ranks that cannot train the recipe."""
        job.check_ranks({"nodes": self.nodes, "ranks": self.ranks})
        files, commands = {RECIPE: job.recipe}, [*exports(self.environment), *self._commands(job)]
        if self.nodes == 1:
            return Description(files, commands)
        note = (
            f"Give this on each of the {self.nodes} machines, which share the run folder. Before, on one of them: "
            f"{job.line('run', '--until', 'examples')}. Afterwards, for scores and export: {job.line('run')}"
        )
        return Description(files, commands, note)

    def submit(self, job: Job, folder: Path, log: Log) -> Mapping[str, str]:
        """As `Submitter.submit`, on this machine; `SystemExit` where a command fails."""
        run_in_order(self._commands(job), self.environment)
        return {}

    def _commands(self, job: Job) -> list[str]:
        if self.nodes > 1:
            return [self._training(job)]
        return stages_around(job, self.ranks, self.restarts)

    def _training(self, job: Job) -> str:
        where = ["--nnodes", str(self.nodes), "--rdzv-backend", "c10d", "--rdzv-endpoint", self.rendezvous]
        return training(job, [*where, "--rdzv-id", job.name], self.ranks, self.restarts)


def stages_around(job: Job, ranks: int, restarts: int) -> list[str]:
    """The commands of a whole run on one machine whose training has several ranks, as a shell reads them."""
    trained = training(job, ["--standalone"], ranks, restarts)
    return [job.line("run", "--until", "examples"), trained, job.line("run")]


def training(job: Job, where: Sequence[str], ranks: int, restarts: int) -> str:
    """torchrun's command for the ranks of one machine, which meet `where` its options say."""
    options = [*where, "--nproc-per-node", str(ranks), "--max-restarts", str(restarts)]
    return shlex.join(["torchrun", *options, "-m", "bertwright.cli", *job.command("train")])
