"""Trains in a child process, whose failure does no harm, and says why it failed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader, FileIO
from pathlib import Path
from select import select
from tempfile import TemporaryFile
from typing import Any, cast

from bertwright.core.errors import DataError
from bertwright.core.signals import check_stop
from bertwright.core.subprocess_group import PYTHON, output_of, subprocess_group

PATIENCE = 20.0
"""Seconds that a child has to end after SIGTERM."""
_ENDED = re.compile(rb"exitcode\s*:\s*(-?\d+)")
"""A rank that failed, in torchrun's report, where the first one comes last."""
_LIMITED = 'echo 1000 2>/dev/null > /proc/self/oom_score_adj; ulimit -d "$0" 2>/dev/null; exec "$@"'
"""Makes the process the first that the kernel kills when memory runs out, and sets a limit at which it ends itself."""
_ERROR = re.compile(r'\{"error": ')
"""How the line begins that a command prints with `--json` if it fails."""


@dataclass(frozen=True)
class ChildResult:
    """How a child ended."""

    code: int
    """Its exit code, or that of the first of its ranks that failed; negative for the signal that ended it."""
    out: bytes
    log: bytes
    ranks: int = 1

    @property
    def reason(self) -> str:
        """Why it failed, in one sentence."""
        # After the lines of its ranks, torchrun writes its own.
        return why_failed(self.out, self.log if self.ranks == 1 else b"", self.code)


def run_child(
    arguments: Sequence[str],
    log: Path,
    ranks: int = 1,
    *,
    memory: str = "",
    limit: float | None = None,
    pass_fds: Sequence[int] = (),
) -> ChildResult:
    """Run a command in `ranks` processes to completion; its standard error goes to the file `log`.

    `memory`: the kilobytes of data that each process may have, or "unlimited"; if given, these processes are also the
    first that the kernel ends when memory runs out. The child inherits the descriptors `pass_fds`. Raises
    `subprocess.TimeoutExpired` after `limit` seconds.
    """
    command = [*program(ranks), *arguments]
    if memory:
        command = ["/bin/sh", "-c", _LIMITED, memory, *command]
    # Ctrl-C reaches only this process, which then ends the child and all its descendants.
    with (
        log.open("wb") as errors,
        subprocess_group(command, PATIENCE, stdout=subprocess.PIPE, stderr=errors, pass_fds=tuple(pass_fds)) as process,
    ):
        out = output_of(process, limit=limit)
    report = log.read_bytes()
    return ChildResult(code_of(process.returncode, report, ranks), out, report, ranks)


@contextmanager
def answering_child(
    command: Sequence[str], name: str, seconds: float | None = None
) -> Iterator[Callable[[bytes], bytes]]:
    """Yield a function that sends a line to the program and returns the line with which it answers; after the block the
    program has been killed.

    Messages call it `name`. The function raises `DataError` if the program has ended, with the last line of its
    standard error, or if it has not begun to answer after `seconds`.
    """
    # A file instead of a pipe, which nobody reads before the end: a full one would stop the program.
    with (
        TemporaryFile() as errors,
        # Unbuffered, so that closing a pipe whose reader is gone has nothing to flush.
        subprocess_group(
            command, 0, name=name, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
        ) as process,
        BufferedReader(cast(FileIO, process.stdout)) as answers,  # a line may be megabytes long
    ):

        def ask(line: bytes) -> bytes:
            assert process.stdin
            check_stop()
            with suppress(BrokenPipeError):
                process.stdin.write(line + b"\n")
            if not select([answers], [], [], seconds)[0]:
                raise DataError(f"{name} has not answered for {seconds:g} seconds")
            if answer := answers.readline():
                return answer
            with suppress(subprocess.TimeoutExpired):  # it closed its output, but still runs
                process.wait(PATIENCE)
            errors.seek(0)
            raise DataError(f"{name} ended early: {why_failed(b'', errors.read(), process.returncode or 0)}")

        yield ask


def program(ranks: int) -> tuple[str, ...]:
    """Return the words that start bertwright in `ranks` processes."""
    several = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)) if ranks > 1 else ()
    return (*PYTHON, *several, "-m", "bertwright.cli")


def code_of(returned: int, log: bytes, ranks: int) -> int:
    """Return the exit code of the first rank that failed: torchrun itself `returned` 1 and reports it in its `log`."""
    found = _ENDED.findall(log) if ranks > 1 else []
    return int(found[-1]) if found else returned


def why_failed(out: bytes, log: bytes, code: int) -> str:
    """The error that a command with `--json` printed (`out`), else the last line of its `log`, else its exit code;
    for a negative `code`, the signal that ended it."""
    if code < 0:
        killed = "; it probably ran out of memory" if -code == signal.SIGKILL else ""
        return f"ended by {signal.Signals(-code).name}{killed}"
    if errors := list(_errors(out.decode("utf-8", "replace"))):
        # Of several ranks, those that ran were stopped when the first one failed.
        return str(next((error for error in errors if error.get("code") == code), errors[-1])["message"])
    lines = log.decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {code}")


def _errors(printed: str) -> Iterator[dict[str, Any]]:
    """The errors of all ranks, which print at once and may share a line."""
    for begin in _ERROR.finditer(printed):
        with suppress(ValueError):
            error = json.JSONDecoder().raw_decode(printed, begin.start())[0]["error"]
            if isinstance(error, dict) and "message" in error:
                yield error
