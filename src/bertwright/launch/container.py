"""A container on this machine, by docker or podman."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError
from bertwright.core.log import Log
from bertwright.launch.environment import Environment
from bertwright.launch.foreground import run_in_order, run_on_terminal
from bertwright.launch.job import RECIPE, Job, listed
from bertwright.launch.options import Words
from bertwright.launch.shared_memory import SharedMemory
from bertwright.launch.target import Description
from bertwright.launch.torchrun import stages_around

SCRIPT = "container.sh"
INSIDE = "/work"
"""Where the current folder is seen in the container."""


def _mounts(mounts: dict[str, str]) -> dict[str, str]:
    for inside, here in mounts.items():
        if not inside.startswith("/") or inside.rstrip("/") in ("", INSIDE):
            raise ValueError(
                f"{inside!r} is where the container sees {here!r}; give an absolute path as /data/128, not {INSIDE}"
            )
        if not here or ":" in inside + here:
            raise ValueError(f"{inside} = {here!r} has to name a folder of this machine, without a colon")
    return mounts


class ContainerPlace(Section):
    """A container that sees the current folder, and is gone when the run is done."""

    kind: Literal["container"] = "container"
    """Names this target."""
    program: Literal["docker", "podman"] = "docker"
    """What runs containers here."""
    image: str = Field("bertwright:cpu", min_length=1)
    """The image, built from container/Dockerfile."""
    gpus: str = Field("", pattern=r"^(all|\d+(,\d+)*)?$")
    """GPUs of this machine for the container: "all", or numbers such as "0,1"; "": none."""
    ranks: int = Field(1, ge=1)
    """Ranks that train in it: one for each GPU, or for each socket."""
    restarts: int = Field(3, ge=0)
    """How often several ranks are started again after one was lost (times)."""
    shm_size: SharedMemory = "1g"
    """Shared memory (/dev/shm), by which ranks exchange gradients: a number and b, k, m or g."""
    mounts: Annotated[dict[str, str], AfterValidator(_mounts)] = Field(default_factory=dict)
    """Folders of this machine, by where the container sees them, such as {"/data/128" = "/disk/hdf5/128"}; they cannot
    be written to. The current folder is seen as /work, and written to."""
    network: str = Field("", pattern=r"^[\w.-]*$")
    """The network of the container: "none", "host" or the name of one; "": the program's own. Only recipes that
    download need any."""
    shell: bool = False
    """A shell in the container, to look around, instead of the run."""
    options: Words = ()
    """More options of docker's or podman's run, such as "--memory=64g"."""
    overrides: tuple[str, ...] = ()
    """Overrides that the container asks of any recipe; those of the command line come after them."""
    environment: Environment = Field(default_factory=dict)
    """Variables in the container."""

    def describe(self, job: Job) -> Description:
        """As `Target.describe`; `RecipeError` for a run folder or for ranks that cannot be."""
        job.require_relative_out("the container sees the current folder alone")
        job.check_ranks({"ranks": self.ranks})
        return Description(
            {RECIPE: job.recipe, SCRIPT: self._script(job)},
            [shlex.join(["sh", f"{job.folder}/{SCRIPT}"])],
            self._unseen(job),
        )

    def _unseen(self, job: Job) -> str:
        """What to say where the recipe reads what the container does not see."""
        seen = [PurePosixPath(folder) for folder in (INSIDE, *self.mounts)]
        whole = {
            key: PurePosixPath(os.path.normpath(f"{INSIDE}/{path}" if path[:1] not in "/~" else path))
            for key, path in job.files.items()
        }
        unseen = {key: job.files[key] for key, path in whole.items() if not any(map(path.is_relative_to, seen))}
        if not unseen:
            return ""
        return (
            f"The container does not see {listed(unseen)}: it sees the current folder as {INSIDE}, and `mounts`. Mount "
            "the folder, and give the path that it has there."
        )

    def submit(self, job: Job, folder: Path, log: Log) -> Mapping[str, str]:
        """As `Submitter.submit`, to its end; `SystemExit` where the container fails."""
        if shutil.which(self.program) is None:
            other = "podman" if self.program == "docker" else "docker"
            raise RecipeError(f"program = {self.program} is not installed here. Install it, or set program={other}.")
        command = shlex.join(["sh", str(folder / SCRIPT)])
        if self.shell:
            run_on_terminal(command)
        else:
            run_in_order([command], {})
        return {}

    def _script(self, job: Job) -> str:
        words = [*self._options(), shlex.quote(self.image), *self._inside(job)]
        lines = " \\\n  ".join([f"exec {self.program} run", *words])
        return f"#!/bin/sh\n# To be run in the folder that {job.out} lies in.\n{lines}\n"

    def _options(self) -> Iterator[str]:
        """Options of `run`, each as it stands in a shell script."""
        yield "--rm --init" + (" --interactive --tty" if self.shell else "")
        # Files in the run folder shall belong to who started it, not to the user of the image.
        yield "--userns=keep-id" if self.program == "podman" else '--user "$(id -u):$(id -g)"'
        yield f'--volume "$PWD":{INSIDE} --workdir {INSIDE}'
        for inside, here in self.mounts.items():
            yield f"--volume {_path(here)}:{shlex.quote(inside)}:ro"
        yield f"--shm-size {self.shm_size} --ulimit memlock=-1"
        if self.gpus:
            yield from self._gpu_options()
        if self.network:
            yield f"--network {self.network}"
        for name, value in self.environment.items():
            yield f"--env {shlex.quote(f'{name}={value}')}"
        yield from map(shlex.quote, self.options)

    def _gpu_options(self) -> Iterator[str]:
        if self.program == "podman":
            yield from (f"--device nvidia.com/gpu={gpu}" for gpu in self.gpus.split(","))
        else:
            # Docker reads a list as CSV, whose commas inside a value need quotes of its own.
            yield "--gpus all" if self.gpus == "all" else f"""--gpus '"device={self.gpus}"'"""

    def _inside(self, job: Job) -> list[str]:
        """The words after the image."""
        if self.shell:
            return ["bash"]
        if self.ranks == 1:
            return [shlex.join(job.command("run"))]
        commands = " && ".join(f"run {line}" for line in stages_around(job, self.ranks, self.restarts))
        return ["sh -c", shlex.quote(f"{_HANDING_ON}\n{commands}")]


_HANDING_ON = """\
run() { "$@" & p=$!; while :; do wait $p; code=$?; kill -0 $p 2>/dev/null || return $code; done; }
trap "kill -TERM \\$p" TERM INT"""
"""A shell that gets a signal would end and leave its command to be killed. This one hands it on, and waits until all is
saved; a `wait` that a signal has ended says nothing of the command."""


def _path(here: str) -> str:
    """A folder of the machine that runs the script, as a shell is told."""
    if here.startswith("~/"):
        return f'"$HOME"/{shlex.quote(here[2:])}'
    # A relative path would be the name of a volume.
    return shlex.quote(here) if here.startswith("/") else f'"$PWD"/{shlex.quote(here)}'
