"""Processes that a test waits for, or looks for."""

import os
import time
from pathlib import Path

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
