"""Processes that a test waits for."""

import os
import time


def gone(pid: int) -> bool:
    """Whether the process ends within 20 seconds: a signal takes a moment, longer on a busy machine."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False
