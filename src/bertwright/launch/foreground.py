"""Run commands one after another on this machine, each to completion."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence

from bertwright.core.signals import handed_on

_PROGRAMS = {
    "bertwright": (sys.executable, "-m", "bertwright.cli"),
    "torchrun": (sys.executable, "-m", "torch.distributed.run"),
}
"""Programs to run with this interpreter, even where the shell uses another environment."""


def run_in_order(commands: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run each command to completion and forward signals; raise `SystemExit` with the code of the first that fails."""
    for line in commands:
        program, *arguments = shlex.split(line)
        command = [*_PROGRAMS.get(program, (program,)), *arguments]
        # A separate process group: Ctrl-C reaches only this process, which forwards it once.
        process = subprocess.Popen(command, env={**os.environ, **environment}, process_group=0)
        with handed_on(process.send_signal):
            code = process.wait()
        _leave_if(code)


def run_on_terminal(line: str) -> None:
    """Run an interactive command to completion; it receives all keys, Ctrl-C included. Exits as `run_in_order` does."""
    with handed_on(lambda number: None):
        _leave_if(subprocess.call(shlex.split(line)))


def _leave_if(code: int) -> None:
    if code:
        raise SystemExit(code if code > 0 else 128 - code)
