"""Processes that a test waits for, or looks for."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from bertwright.core.signals import SAME

PATIENCE = 900
"""Seconds after which a wait fails that would otherwise never end: many times what it takes on a machine with twenty
processes for two cores."""


def gone(pid: int) -> bool:
    """Whether the process ends: a signal takes a moment, longer on a busy machine."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def children(parent: int) -> list[int]:
    """The ids of the child processes."""
    return [int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def child_of(parent: int, variable: str) -> int:
    """The id of the child process that has this variable in its environment."""
    for child in children(parent):
        if variable.encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            return child
    raise AssertionError(f"{parent} has no child with {variable}")


def signal_again(process: subprocess.Popen[Any], number: signal.Signals | int) -> None:
    """Send a second signal to a process that goes on after the first; and more, until it ends: on a busy machine it may
    hear the first so late that the next counts as the same."""
    time.sleep(1.5 * SAME)
    assert process.poll() is None
    while process.poll() is None:
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(1.5 * SAME)
