"""A process beside each rank that sends `pulse` to its peers while the rank runs, however long C code keeps Python.

Threads of a process take turns with Python's lock, which C code may hold for long: a sort of a list, or an array on a
network disk that does not answer for a while. A heartbeat thread is silent meanwhile, as if the rank were stopped.

It runs without the package: `python -I -S pulse.py RANK_PID SECONDS SOCKET...`, where each socket is a descriptor. It
ends when its standard input ends, which the rank holds open: no connection may outlive a rank that was killed.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def pulse(sockets: Sequence[int], seconds: float) -> Iterator[None]:
    """Run it for this process inside the block, with a pulse every so many seconds. Does nothing where the system does
    not report whether a process is stopped: a stopped rank must not seem to run."""
    from bertwright.core.signals import block_signals

    if _state(os.getpid()) is None:
        yield
        return
    command = [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(seconds), *map(str, sockets)]
    with block_signals():
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=sockets)
    try:
        yield
    finally:
        process.communicate()


def _state(process: int) -> str | None:
    """The state of a process as Linux reports it, such as R or T; None if it is unknown."""
    try:
        # The name before it, in parentheses, may have spaces.
        return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return None


def _send_pulses(rank: int, seconds: float, sockets: Sequence[int]) -> None:
    # The parent changes when the rank ends: a process that it has forked may keep the input open.
    while os.getppid() == rank and not select.select([0], [], [], seconds)[0]:
        if _state(rank) not in ("T", "t"):  # stopped, or by a debugger
            for each in sockets:
                with suppress(OSError):  # full, or closed: the watchdog finds out why
                    os.write(each, b"pulse\n")


if __name__ == "__main__":
    _send_pulses(int(sys.argv[1]), float(sys.argv[2]), list(map(int, sys.argv[3:])))
