"""Runs a program in its own process group, which ends with the block that needs it, whatever ends the block."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from bertwright.core.signals import delayed


@contextmanager
def running(command: Sequence[str], patience: float, **settings: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the program, started with the `settings` of `subprocess.Popen`; after the block its whole group has ended.

    If it still runs then, it receives SIGTERM and has `patience` seconds before it is killed. Ctrl-C does not reach the
    group. Raises `OSError` if the program cannot be started.
    """
    process = None
    try:
        # A signal that raised between the start and the assignment would leave a program that nobody ends.
        with delayed():
            process = subprocess.Popen(command, process_group=0, **settings)
        yield process
    finally:
        if process is not None:
            _end_group(process, patience)


def shell_code(code: int) -> int:
    """Return an exit code of `subprocess` as a shell reports it: 128 + n for a program that signal n ended."""
    return code if code >= 0 else 128 - code


def _end_group(process: subprocess.Popen[bytes], patience: float) -> None:
    """If the program has already exited, its children may still run."""
    if patience and process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()
