"""A machine of any cloud, by SkyPilot: rented, set up, used for training, and returned."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from bertwright.check.recipe.packages import optional_packages
from bertwright.core.config import Section
from bertwright.core.errors import RecipeError
from bertwright.launch.job import RECIPE, Job, list_files, local_paths, unpersisted_outputs
from bertwright.launch.options import Environment
from bertwright.launch.target import Description
from bertwright.launch.torchrun import run_commands
from bertwright.launch.wheel import WHEEL, requirement
from bertwright.launch.yaml_text import yaml_text

TASK = "task.yaml"
_SETUP = """\
set -e
cd "$HOME"
PATH="$HOME/.local/bin:$PATH"
command -v uv || curl -LsSf https://astral.sh/uv/install.sh | sh
uv venv --allow-existing --python 3.12 bertwright
uv pip install --python bertwright/bin/python '{package}'
"""
"""SkyPilot starts in a folder of its own. The machine's Python may be older than bertwright needs, so uv, which
SkyPilot installs for itself, fetches one if there is none."""


class SkypilotPlace(Section):
    """One machine that SkyPilot rents from the cheapest cloud that offers it. Description only: `sky` submits."""

    kind: Literal["skypilot"] = "skypilot"
    """Names this target."""
    accelerators: str = Field("", pattern=r"^([A-Za-z0-9-]+:[1-9]\d*)?$")
    """GPUs in SkyPilot's notation with their number, such as "H100:8"; one rank each. "": train on the CPU."""
    cpus: str = Field("8+", pattern=r"^[1-9]\d*\+?$")
    """CPUs of the machine; a trailing + means at least."""
    memory: str = Field("32+", pattern=r"^[1-9]\d*\+?$")
    """Memory of the machine in GB; a trailing + means at least."""
    disk: int = Field(256, ge=30)
    """Disk size of the machine in GB."""
    cloud: str = Field("", pattern=r"^[a-z0-9-]*(/[\w*-]+){0,2}$")
    """Cloud, region and zone, such as "azure" or "aws/us-east-1"; "": wherever it is cheapest."""
    spot: bool = False
    """Whether to use a spot machine, at a third of the price. Once preempted, training resumes from `train.mirror`."""
    restarts: int = Field(3, ge=0)
    """Maximum number of restarts of multi-rank training after a rank was lost (times)."""
    overrides: tuple[str, ...] = ()
    """Overrides applied to every recipe on this machine; those on the command line are applied after them."""
    environment: Environment = Field(default_factory=dict)
    """Environment variables of the task."""

    def describe(self, job: Job) -> Description:
        """As `Target.describe`; raises `RecipeError` for a spot machine without a storage for checkpoints, and for an
        invalid run folder or number of ranks."""
        job.require_relative_out("the machine is new, and paths on it are relative to the home folder")
        job.check_ranks({f"accelerators = {self.accelerators}, GPUs": self._ranks()})
        # A folder of the machine would go with it, and for another storage the task installs no package.
        if self.spot and "train.mirror" not in {need.key for need in optional_packages(job.loaded, ("train",))}:
            raise RecipeError(
                "spot = true: the machine and its disk may be reclaimed, so checkpoints must be copied to a storage "
                "that the task can write to. Set train.mirror=s3://BUCKET/FOLDER or az://CONTAINER/FOLDER, or "
                "remove spot."
            )
        # When its machine is preempted, SkyPilot restarts a managed job on another one.
        launch = ["sky", "jobs", "launch"] if self.spot else ["sky", "launch", "--cluster", _name(job)]
        files = {RECIPE: job.recipe, TASK: yaml_text(self._task(job))}
        lines = [shlex.join([*launch, f"{job.folder}/{TASK}"])]
        return Description(files, lines, self._note(job), _upload_note(job, local_paths(job.files)), WHEEL)

    def _note(self, job: Job) -> str:
        """Return what the user has to do in addition."""
        notes = list(filter(None, (_upload_note(job, job.files), unpersisted_outputs(job, "~"))))
        if self.spot:
            notes.append(
                "The machine is released when the job ends, and only the files in train.mirror are kept. Then run "
                "the same recipe here for scores, export and report."
            )
        else:
            fetch = shlex.join(["rsync", "-a", f"{_name(job)}:{job.out}/", f"{job.out}/"])
            notes.append(
                f"When the job has finished, fetch the run and release the machine: {fetch} && sky down {_name(job)}"
            )
        return " ".join(notes)

    def monitoring_commands(self, job: Job) -> Mapping[str, str]:
        """As `DescribedOnly.monitoring_commands`."""
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
        commands = [job.line("run")] if ranks == 1 else run_commands(job, ranks, self.restarts)
        machine: dict[str, Any] = {"cpus": self.cpus, "memory": self.memory, "disk_size": self.disk}
        machine |= {"accelerators": self.accelerators} if self.accelerators else {}
        machine |= {"infra": self.cloud} if self.cloud else {}
        machine |= {"use_spot": True} if self.spot else {}
        package = requirement({"azure", "formats", "hf", "s3"} | job.extras, str(job.folder))
        # The run folder and the environment are below the home folder, and SkyPilot starts in a folder of its own.
        enter = 'cd "$HOME" && . bertwright/bin/activate'
        return {
            "name": _name(job),
            "resources": machine,
            "file_mounts": {f"~/{job.folder}/{name}": f"./{job.folder}/{name}" for name in (RECIPE, WHEEL)},
            "envs": dict(self.environment),
            "setup": _SETUP.format(package=package),
            "run": "\n".join(["set -e", enter, *commands, ""]),
        }


def _upload_note(job: Job, files: Mapping[str, str]) -> str:
    """Return what to do about files that the machine does not have; "" if there are none."""
    if not files:
        return ""
    return (
        f"The machine is new and does not have {list_files(files)}: give an address (s3://, az://, https://) if the "
        "key accepts one, or a path relative to the home folder there, and add that file to file_mounts of "
        f"{job.folder}/{TASK}."
    )


def _name(job: Job) -> str:
    """Return a valid SkyPilot name for the cluster and the task."""
    if not re.fullmatch(r"[A-Za-z]([\w.-]*[A-Za-z0-9])?", job.name, re.ASCII):
        raise RecipeError(
            f"--out {job.out}: SkyPilot needs a name that begins with a letter and has only letters, digits, and . "
            "_ - inside. Rename the run."
        )
    return job.name
