"""Commands one after another on this machine, to their ends."""

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
"""Those of this interpreter, also where its environment is not the shell's."""


def run_in_order(commands: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run each command to its end; signals are handed on. `SystemExit` with the code of the first that fails."""
    for line in commands:
        program, *arguments = shlex.split(line)
        command = [*_PROGRAMS.get(program, (program,)), *arguments]
        # A group of its own: Ctrl-C reaches this process alone, which hands it on once.
        process = subprocess.Popen(command, env={**os.environ, **environment}, process_group=0)
        with handed_on(process.send_signal):
            code = process.wait()
        _leave_if(code)


def run_on_terminal(line: str) -> None:
    """Run a command that is talked to, to its end: keys, Ctrl-C among them, are its own. Ends as `run_in_order`."""
    with handed_on(lambda number: None):
        _leave_if(subprocess.call(shlex.split(line)))


def _leave_if(code: int) -> None:
    if code:
        raise SystemExit(code if code > 0 else 128 - code)
