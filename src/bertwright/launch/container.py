"""A container on this machine, run by docker or podman."""

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
from bertwright.launch.foreground import run_in_order, run_on_terminal
from bertwright.launch.job import RECIPE, Job, list_files, unpersisted_outputs
from bertwright.launch.options import Environment, SharedMemory, Words
from bertwright.launch.target import Description
from bertwright.launch.torchrun import run_commands

SCRIPT = "container.sh"
INSIDE = "/work"
"""Where the container sees the current folder."""


def _mounts(mounts: dict[str, str]) -> dict[str, str]:
    for inside, here in mounts.items():
        if not inside.startswith("/") or inside.rstrip("/") in ("", INSIDE):
            raise ValueError(
                f"{inside!r} is the path of {here!r} in the container; give an absolute path such as /data/128, not "
                f"{INSIDE}"
            )
        if not here or ":" in inside + here:
            raise ValueError(f"{inside} = {here!r} must be a folder of this machine, without a colon")
    return mounts


class ContainerPlace(Section):
    """A container that sees the current folder and is removed when the run ends."""

    kind: Literal["container"] = "container"
    """Names this target."""
    program: Literal["docker", "podman"] = "docker"
    """The program that runs containers on this machine."""
    image: str = Field("bertwright:cpu", min_length=1)
    """The image, built from container/Dockerfile."""
    gpus: str = Field("", pattern=r"^(all|\d+(,\d+)*)?$")
    """GPUs of this machine that the container sees: "all", or numbers such as "0,1"; "": none."""
    ranks: int = Field(1, ge=1)
    """Ranks that train in the container: one for each GPU, or for each CPU socket."""
    restarts: int = Field(3, ge=0)
    """Maximum number of restarts of multi-rank training after a rank was lost (times)."""
    shm_size: SharedMemory = "1g"
    """Size of shared memory (/dev/shm), through which ranks exchange gradients: a number and b, k, m or g."""
    mounts: Annotated[dict[str, str], AfterValidator(_mounts)] = Field(default_factory=dict)
    """Folders of this machine to mount read-only, keyed by their path in the container, such as
    {"/data/128" = "/disk/hdf5/128"}. The current folder is always mounted as /work, writable."""
    network: str = Field("", pattern=r"^[\w.-]*$")
    """Network of the container: "none", "host" or the name of a network; "": the program's default. Only recipes that
    download need one."""
    shell: bool = False
    """Whether to open an interactive shell in the container instead of starting the run."""
    options: Words = ()
    """Further options of `docker run` or `podman run`, such as "--memory=64g"."""
    overrides: tuple[str, ...] = ()
    """Overrides applied to every recipe in this container; those on the command line are applied after them."""
    environment: Environment = Field(default_factory=dict)
    """Environment variables in the container."""

    def describe(self, job: Job) -> Description:
        """As `Target.describe`; raises `RecipeError` for an invalid run folder or number of ranks."""
        job.require_relative_out("the container sees only the current folder")
        job.check_ranks({"ranks": self.ranks})
        return Description(
            {RECIPE: job.recipe, SCRIPT: self._script(job)},
            [shlex.join(["sh", f"{job.folder}/{SCRIPT}"])],
            " ".join(filter(None, (self._unseen(job), unpersisted_outputs(job, INSIDE)))),
        )

    def _unseen(self, job: Job) -> str:
        """Return a note naming the recipe's files that the container does not see; "" if it sees all."""
        seen = [PurePosixPath(folder) for folder in (INSIDE, *self.mounts)]
        # As the container sees them: "~" is not the home folder of this machine, so it is never below a mount.
        absolute = {
            key: PurePosixPath(os.path.normpath(f"{INSIDE}/{path}" if path[:1] not in "/~" else path))
            for key, path in job.files.items()
        }
        unseen = {key: job.files[key] for key, path in absolute.items() if not any(map(path.is_relative_to, seen))}
        if not unseen:
            return ""
        return (
            f"The container does not see {list_files(unseen)}: it sees only the current folder, as {INSIDE}, and "
            "`mounts`. Mount the folder, and use its path in the container."
        )

    def submit(self, job: Job, folder: Path, log: Log) -> Mapping[str, str]:
        """As `Submitter.submit`, but waits for the container to end; raises `SystemExit` if it fails."""
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
        # exec, so that a signal to the script reaches the program, which forwards it to the container.
        lines = " \\\n  ".join([f"exec {self.program} run", *words])
        return f"#!/bin/sh\n# Run this in the folder that contains {job.out}.\n{lines}\n"

    def _options(self) -> Iterator[str]:
        """Yield the options of `run`, each quoted for a shell script."""
        # --init: as process 1, a command would not end at a signal for which it has no handler.
        yield "--rm --init" + (" --interactive --tty" if self.shell else "")
        # Files in the run folder must belong to the user who started the run, not to the user of the image.
        yield "--userns=keep-id" if self.program == "podman" else '--user "$(id -u):$(id -g)"'
        yield f'--volume "$PWD":{INSIDE} --workdir {INSIDE}'
        for inside, here in self.mounts.items():
            yield f"--volume {_path(here)}:{shlex.quote(inside)}:ro"
        # No limit to memlock, as NVIDIA starts its BERT: NCCL locks the memory that it transfers.
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
            # Docker parses a list as CSV, so commas inside a value need their own quotes.
            yield "--gpus all" if self.gpus == "all" else f"""--gpus '"device={self.gpus}"'"""

    def _inside(self, job: Job) -> list[str]:
        """Return the words after the image."""
        if self.shell:
            return ["bash"]
        if self.ranks == 1:
            return [shlex.join(job.command("run"))]
        commands = " && ".join(f"run {line}" for line in run_commands(job, self.ranks, self.restarts))
        return ["sh -c", shlex.quote(f"{_HANDING_ON}\n{commands}")]


_HANDING_ON = """\
s=0 p=
stop() { s=$1 i=1; [ -z "$p" ] || kill -TERM "$p" 2>/dev/null; }
trap "stop 75" TERM HUP USR1 USR2
trap "stop 130" INT
run() {
[ $s = 0 ] || exit $s
"$@" & p=$!
[ $s = 0 ] || kill -TERM $p 2>/dev/null
code=127
while :; do i=0; wait $p; c=$?; [ $c = 127 ] || code=$c; [ $i = 1 ] || break; done
p=
case $s:$1:$code in 0:*) ;; *:torchrun:1|*:75|*:1[2-9]?|*:2??|*:-1) code=$s ;; esac
return $code; }"""
"""A shell that receives a signal would exit and leave its command to be killed. This function forwards the signal,
waits until everything is saved, and starts nothing afterwards. A `wait` that a signal interrupts does not return the
command's status, so it is repeated; a shell that has collected it already answers 127, or bash 255. After a signal
torchrun ends with 1, and a program that had no handler yet with 143. All these become 75, or 130 after Ctrl-C, as when
bertwright itself is stopped."""


def _path(here: str) -> str:
    """Return a folder of the machine that runs the script, quoted for the shell."""
    if here.startswith("~/"):
        return f'"$HOME"/{shlex.quote(here[2:])}'
    # Docker would treat a relative path as the name of a volume.
    return shlex.quote(here) if here.startswith("/") else f'"$PWD"/{shlex.quote(here)}'
