"""The cost of running a program: processor time of all its processes, and wall-clock time."""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(Path(__file__).parents[1] / "src"),
    **dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
}


@dataclass(frozen=True)
class Cost:
    """The cost of one program, including its children."""

    cpu: float
    """Seconds of processor time."""
    wall: float
    """Wall-clock seconds."""


def measured(command: list[str], cores: int) -> Cost:
    """Run a program to completion on `cores` cores and return its cost."""
    mine = sorted(os.sched_getaffinity(0))[:cores]
    begun = time.monotonic()
    process = subprocess.Popen(
        command,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: os.sched_setaffinity(0, mine),
    )
    assert process.stderr is not None
    with process.stderr as stream:
        said = stream.read()
    _, status, usage = os.wait4(process.pid, 0)
    cpu = usage.ru_utime + usage.ru_stime + sum(_of_orphans())
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{said.decode(errors='replace')[-3000:]}")
    return Cost(cpu, time.monotonic() - begun)


def _of_orphans() -> Iterator[float]:
    """Processor time of descendants that the program did not wait for: quntoken is a chain of such processes."""
    with suppress(ChildProcessError):
        while (ended := os.wait4(-1, os.WNOHANG))[0]:
            yield ended[2].ru_utime + ended[2].ru_stime


def adopt_orphans() -> None:
    """Make this process the parent of orphaned descendants (Linux, prctl(2))."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
