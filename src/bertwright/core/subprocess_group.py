"""Runs a program in its own process group, which ends with the block that needs it, whatever ends the block."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

from bertwright.core.signals import (
    POLL_SECONDS,
    PROGRAMS,
    STARTING,
    check_stop,
    delay_signals,
    handles_signals,
    kill_all,
)

PYTHON = (sys.executable, "-P")
"""The words that start this Python, in which no file of the working folder, such as a random.py, is taken for a
module."""


@contextmanager
def subprocess_group(
    command: Sequence[str], patience: float, *, name: str = "", **settings: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the program, started with the `settings` of `subprocess.Popen`; after the block its whole group has ended,
    with all its descendants. `name` is what messages call it, by default the name of its file.

    If it still runs then, it receives SIGTERM and has `patience` seconds before it is killed. Ctrl-C does not reach the
    group. Raises `OSError` if the program cannot be started.
    """
    process = None
    try:
        # Outside the command line, Ctrl-C raised between the two lines would leave a program running.
        with STARTING, delay_signals():
            process = subprocess.Popen(command, process_group=0, **settings)
            PROGRAMS[process] = f"{name or os.path.basename(command[0])} (process {process.pid})"
        yield process
    finally:
        if process is not None:
            _end_group(process, patience)
            PROGRAMS.pop(process, None)


def output_of(process: subprocess.Popen[bytes], given: bytes | None = None, limit: float | None = None) -> bytes:
    """Return the standard output of a program, which receives `given`, once it has ended; a signal ends the waiting
    (`check_stop`). Raises `subprocess.TimeoutExpired` after `limit` seconds."""
    if not handles_signals():
        return process.communicate(given, limit)[0] or b""
    # On a thread, because communicating cannot be interrupted and resumed while input is being sent.
    answer = Future[bytes]()
    Thread(target=_communicate, args=(answer, process, given, limit), name="output", daemon=True).start()
    while not wait([answer], POLL_SECONDS).done:
        check_stop()
    return answer.result()


def _communicate(
    answer: Future[bytes], process: subprocess.Popen[bytes], given: bytes | None, limit: float | None
) -> None:
    try:
        answer.set_result(process.communicate(given, limit)[0] or b"")
    except BaseException as error:  # raised where the answer is waited for
        answer.set_exception(error)


def shell_code(code: int) -> int:
    """Return an exit code of `subprocess` as a shell reports it: 128 + n for a program that signal n ended."""
    return code if code >= 0 else 128 - code


def _end_group(process: subprocess.Popen[bytes], patience: float) -> None:
    """If the program has already exited, its children may still run."""
    if patience and process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    kill_all(process.pid)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()
