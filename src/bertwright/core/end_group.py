"""The end of a program that was started in a process group of its own, with everything that it started."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress


def end_group(process: subprocess.Popen[bytes], patience: float) -> None:
    """Have the program end, by SIGTERM, within `patience` seconds; then kill whatever is left of its group.

    `process` was started with `process_group=0`. One that has ended already may have left others behind.
    """
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
