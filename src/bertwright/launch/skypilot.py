"""A machine of any cloud, by SkyPilot: rented, set up, trained on, and given back."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from bertwright._version import __version__
from bertwright.core.config import Section
from bertwright.core.errors import RecipeError
from bertwright.launch.environment import Environment
from bertwright.launch.job import RECIPE, Job, listed
from bertwright.launch.target import Description
from bertwright.launch.torchrun import stages_around
from bertwright.launch.yaml_text import yaml_text

TASK = "task.yaml"


class SkypilotPlace(Section):
    """One machine that SkyPilot rents in the cloud that has it, at the lowest price. Described only: `sky` submits."""

    kind: Literal["skypilot"] = "skypilot"
    """Names this target."""
    accelerators: str = Field("", pattern=r"^([A-Za-z0-9-]+:[1-9]\d*)?$")
    """GPUs as SkyPilot names them, with their number, such as "H100:8": a rank for each. "": processors train."""
    cpus: str = Field("8+", pattern=r"^[1-9]\d*\+?$")
    """Processors of the machine; + for at least."""
    memory: str = Field("32+", pattern=r"^[1-9]\d*\+?$")
    """Memory of the machine in GB; + for at least."""
    disk: int = Field(256, ge=30)
    """Disk of the machine, in GB."""
    cloud: str = Field("", pattern=r"^[a-z0-9-]*(/[\w*-]+){0,2}$")
    """Cloud, region and zone, such as "azure" or "aws/us-east-1"; "": wherever it is cheapest."""
    spot: bool = False
    """Whether it may be taken away, for a third of the price. Training then goes on elsewhere, from `train.mirror`."""
    restarts: int = Field(3, ge=0)
    """How often several ranks are started again after one was lost (times)."""
    overrides: tuple[str, ...] = ()
    """Overrides that the machine asks of any recipe; those of the command line come after them."""
    environment: Environment = Field(default_factory=dict)
    """Variables of the task."""

    def describe(self, job: Job) -> Description:
        """As `Target.describe`; `RecipeError` for a machine that may be lost with all its checkpoints, and for a run
        folder or ranks that cannot be."""
        job.require_relative_out("the machine is a new one, whose folders are named from its home")
        job.check_ranks({f"accelerators = {self.accelerators}, GPUs": self._ranks()})
        if self.spot and not job.values.get("train", {}).get("mirror"):
            raise RecipeError(
                "spot = true: the machine may be taken away, and its disk with it, so checkpoints need another place. "
                "Add train.mirror=s3://BUCKET/FOLDER (or az://, gs://), or leave spot out."
            )
        # A managed job is started again elsewhere when its machine is taken away.
        launch = ["sky", "jobs", "launch"] if self.spot else ["sky", "launch", "--cluster", _name(job)]
        files = {RECIPE: job.recipe, TASK: yaml_text(self._task(job))}
        return Description(files, [shlex.join([*launch, f"{job.folder}/{TASK}"])], self._note(job))

    def _note(self, job: Job) -> str:
        """What its user has to do beside."""
        said = []
        if job.files:
            said.append(
                f"The machine is a new one, without {listed(job.files)}: give an address (s3://, az://, https://) "
                f"where the key takes one, or add the file to file_mounts of {job.folder}/{TASK}."
            )
        if self.spot:
            said.append(
                "The machine is given back when the job ends, and of the run only what train.mirror has is kept: run "
                "the same recipe here then, for scores, export and report."
            )
        else:
            fetch = shlex.join(["rsync", "-a", f"{_name(job)}:{job.out}/", f"{job.out}/"])
            said.append(f"When it is done, fetch the run and give the machine back: {fetch} && sky down {_name(job)}")
        return " ".join(said)

    def looked_after(self, job: Job) -> Mapping[str, str]:
        """As `DescribedOnly.looked_after`."""
        name = _name(job)
        if self.spot:
            words = {"status": ["queue"], "logs": ["logs", "--name", name], "stop": ["cancel", "--name", name]}
            return {what: shlex.join(["sky", "jobs", *each]) for what, each in words.items()}
        words = {"status": ["queue", name], "logs": ["logs", name], "stop": ["cancel", "--all", name]}
        return {what: shlex.join(["sky", *each]) for what, each in words.items()}

    def _ranks(self) -> int:
        return int(self.accelerators.partition(":")[2] or 1)

    def _task(self, job: Job) -> dict[str, Any]:
        ranks = self._ranks()
        commands = [job.line("run")] if ranks == 1 else stages_around(job, ranks, self.restarts)
        machine: dict[str, Any] = {"cpus": self.cpus, "memory": self.memory, "disk_size": self.disk}
        machine |= {"accelerators": self.accelerators} if self.accelerators else {}
        machine |= {"infra": self.cloud} if self.cloud else {}
        machine |= {"use_spot": True} if self.spot else {}
        extras = ",".join(sorted({"azure", "formats", "hf", "s3"} | job.extras))
        package = f"bertwright[{extras}]=={__version__}"
        enter = 'cd "$HOME" && . bertwright/bin/activate'
        return {
            "name": _name(job),
            "resources": machine,
            "file_mounts": {f"~/{job.folder}/{RECIPE}": f"./{job.folder}/{RECIPE}"},
            "envs": dict(self.environment),
            "setup": f"python3 -m venv bertwright\nbertwright/bin/pip install '{package}'\n",
            "run": "\n".join(["set -e", enter, *commands, ""]),
        }


def _name(job: Job) -> str:
    """What SkyPilot takes as the name of a cluster and of a task."""
    if not re.fullmatch(r"[A-Za-z]([\w.-]*[A-Za-z0-9])?", job.name, re.ASCII):
        raise RecipeError(
            f"--out {job.out}: SkyPilot needs a name of letters, digits, and . _ - within, that begins with a letter. "
            "Rename the run."
        )
    return job.name
