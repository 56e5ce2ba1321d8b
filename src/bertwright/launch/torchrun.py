"""Ranks started by torchrun on this machine, or on several machines that users log in to one by one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from bertwright.core.config import Section
from bertwright.core.log import Log
from bertwright.estimate.machine import TORCHRUN_RANKS
from bertwright.launch.foreground import run_in_order
from bertwright.launch.job import RECIPE, Job
from bertwright.launch.options import Environment, exports
from bertwright.launch.target import Description


class TorchrunPlace(Section):
    """torchrun: training runs in several processes, everything else in one."""

    kind: Literal["torchrun"] = "torchrun"
    """Names this target."""
    nodes: int = Field(1, ge=1)
    """Number of machines that train together. With several, run the command once on each."""
    ranks: int = Field(TORCHRUN_RANKS, ge=1)
    """Ranks on each machine: one for each GPU, or for each CPU socket."""
    # Also the default is validated: with several nodes, no rendezvous is a mistake.
    rendezvous: str = Field("", validate_default=True)
    """Rendezvous of several machines, such as "node1:29500": a host name that all of them resolve, and a free port."""
    restarts: int = Field(3, ge=0)
    """Maximum number of restarts of all ranks by torchrun after one was lost (times)."""
    overrides: tuple[str, ...] = ()
    """Overrides applied to every recipe on these machines; those on the command line are applied after them."""
    environment: Environment = Field(default_factory=dict)
    """Environment variables of the commands."""

    @field_validator("rendezvous")
    @classmethod
    def _meet_somewhere(cls, rendezvous: str, info: ValidationInfo) -> str:
        # `nodes` is missing here if it is invalid itself, which is another message.
        alone = info.data.get("nodes", 1) == 1 and not rendezvous
        if not alone and not re.fullmatch(r"[^:\s]+:\d+", rendezvous):
            raise ValueError(
                'several nodes need a host name and a port that all of them can reach, such as "node1:29500"'
            )
        return rendezvous

    def describe(self, job: Job) -> Description:
        """As `Target.describe`; raises `RecipeError` if the recipe cannot train with this number of ranks."""
        job.check_ranks({"nodes": self.nodes, "ranks": self.ranks})
        files, commands = {RECIPE: job.recipe}, [*exports(self.environment), *self._commands(job)]
        if self.nodes == 1:
            return Description(files, commands)
        note = (
            f"Run this on each of the {self.nodes} machines, which must share the run folder. First, on one of "
            f"them: {job.line('run', '--until', 'examples')}. Afterwards, for scores and export: {job.line('run')}"
        )
        return Description(files, commands, note)

    def submit(self, job: Job, folder: Path, log: Log) -> Mapping[str, str]:
        """As `Submitter.submit`, on this machine; raises `SystemExit` if a command fails."""
        run_in_order(self._commands(job), self.environment)
        return {}

    def _commands(self, job: Job) -> list[str]:
        if self.nodes > 1:
            return [self._training_command(job)]
        return run_commands(job, self.ranks, self.restarts)

    def _training_command(self, job: Job) -> str:
        # The id keeps apart runs whose machines meet at the same address.
        where = ["--nnodes", str(self.nodes), "--rdzv-backend", "c10d", "--rdzv-endpoint", self.rendezvous]
        return torchrun_command(job, [*where, "--rdzv-id", job.name], self.ranks, self.restarts)


def run_commands(job: Job, ranks: int, restarts: int) -> list[str]:
    """Return the commands of a complete run on one machine with several training ranks, quoted for a shell."""
    # --standalone selects a free port, so that several runs fit on one machine.
    trained = torchrun_command(job, ["--standalone"], ranks, restarts)
    return [job.line("run", "--until", "examples"), trained, job.line("run")]


def torchrun_command(job: Job, where: Sequence[str], ranks: int, restarts: int) -> str:
    """Return torchrun's command for the ranks of one machine; the options `where` give the rendezvous."""
    options = [*where, "--nproc-per-node", str(ranks), "--max-restarts", str(restarts)]
    # A module, because torchrun starts files and modules of Python, not installed commands.
    return shlex.join(["torchrun", *options, "-m", "bertwright.cli", *job.command("train")])
