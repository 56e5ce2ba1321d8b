"""Ends a program that runs in its own process group, along with everything it started."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress


def end_group(process: subprocess.Popen[bytes], patience: float) -> None:
    """Send SIGTERM and wait up to `patience` seconds for the program; then kill whatever is left of its group.

    `process` must have been started with `process_group=0`. If it has already exited, its children may still run.
    """
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
