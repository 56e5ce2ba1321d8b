"""Run commands one after another on this machine, each to completion."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence

from bertwright.core.signals import PROGRAMS, STARTING, Stopped, delay_signals, forward_signals
from bertwright.core.subprocess_group import PYTHON, shell_code, subprocess_group

_PROGRAMS = {
    "bertwright": (*PYTHON, "-m", "bertwright.cli"),
    "torchrun": (*PYTHON, "-m", "torch.distributed.run"),
}
"""Programs to run with this interpreter, even where the shell uses another environment."""
_TORCHRUN = "torchrun"
_FAILED = 1
"""Exit code of torchrun whenever it does not finish; after a signal, its ranks have saved and ended with 75."""
_UNHEARD = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals that end torchrun at once, so that its ranks are left behind."""


def run_in_order(commands: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run each command to completion and forward signals; raise `SystemExit` with the code of the first that fails.

    After a signal no further command starts. The code is then 75, or 130 after SIGINT, unless a command has reported
    an error of its own. A command that does not end after a second signal is killed and named, and this process ends.
    """
    received: list[int] = []
    started: list[tuple[str, subprocess.Popen[bytes]]] = []

    def send(number: int) -> None:
        for program, process in started[-1:]:
            process.send_signal(signal.SIGTERM if program == _TORCHRUN and number in _UNHEARD else number)

    def hand_on(number: int) -> None:
        received.append(number)
        send(number)

    # Around all commands: a signal between two of them, or while one starts, must not leave a process behind.
    with forward_signals(hand_on):
        for line in commands:
            if received:
                raise SystemExit(Stopped(received[0]).exit_code)
            program, *arguments = shlex.split(line)
            command = [*_PROGRAMS.get(program, (program,)), *arguments]
            # A separate process group: Ctrl-C reaches only this process, which forwards it once.
            with subprocess_group(command, 0, name=program, env={**os.environ, **environment}) as process:
                started.append((program, process))
                for number in tuple(received):  # it arrived while the command started
                    send(number)
                code = process.wait()
            # Stopped, not failed: ended by the signal before it had a handler, or torchrun, which has only one code.
            if received and (-code in received or (program == _TORCHRUN and code in (_FAILED, -signal.SIGTERM))):
                code = Stopped(received[0]).exit_code
            _leave_if(code)


def run_on_terminal(line: str) -> None:
    """Run an interactive command to completion; it receives all keys, Ctrl-C included. Exits as `run_in_order` does."""
    received: list[int] = []
    process: subprocess.Popen[bytes] | None = None

    def hand_on(number: int) -> None:
        received.append(number)
        if process:
            process.send_signal(number)

    with forward_signals(hand_on):
        with STARTING, delay_signals():
            process = subprocess.Popen(shlex.split(line))
            PROGRAMS[process] = f"the command on the terminal (process {process.pid})"
        # The terminal sends Ctrl-C to this process, too, but the interactive command decides what it means.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = process.wait()
    del PROGRAMS[process]
    _leave_if(Stopped(received[0]).exit_code if received and -code in received else code)


def _leave_if(code: int) -> None:
    if code:
        raise SystemExit(shell_code(code))
