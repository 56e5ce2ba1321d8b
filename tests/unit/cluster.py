"""A Dask cluster on this machine: a scheduler process and worker processes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def cluster(*threads: int) -> Iterator[str]:
    """The address of a scheduler that has a worker process for each number of threads."""
    begun: list[subprocess.Popen[bytes]] = []
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}

    def begin(what: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *arguments, "--no-dashboard"]
        begun.append(subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE))
        return begun[-1]

    try:
        said = begin("scheduler", "--host", "127.0.0.1", "--port", "0").stderr
        assert said is not None
        address = next(line for line in said if b"Scheduler at:" in line).split()[-1].decode()
        for number in threads:
            begin("worker", address, "--nthreads", str(number), "--no-nanny")
        yield address
    finally:
        for process in begun:
            process.kill()
            process.communicate()
