"""A program that runs for a block ends with it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from tests.processes import PATIENCE, gone
from tests.rows import each_row

from bertwright.core.signals import Stopped, end_on_signals
from bertwright.core.subprocess_group import output_of, subprocess_group

SLEEP = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)")
DEAF = (
    *SLEEP[:-1],
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)",
)
FAMILY = ("/bin/sh", "-c", "sleep 600 & echo $!")


def test_a_program_that_ends_by_itself_has_its_exit_code() -> None:
    with subprocess_group((*SLEEP[:-1], "import sys; sys.exit(3)"), 0) as process:
        assert process.wait(PATIENCE) == 3


@each_row(("patience", "code"), [(0.0, -signal.SIGKILL), (60.0, -signal.SIGTERM)])
def test_a_program_that_still_runs_is_ended_even_after_an_error(patience: float, code: int) -> None:
    with pytest.raises(ZeroDivisionError), subprocess_group(SLEEP, patience) as process:
        raise ZeroDivisionError
    assert process.returncode == code


def test_one_that_ignores_the_signal_is_killed() -> None:
    with subprocess_group(DEAF, 0.1, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
    assert process.returncode == -signal.SIGKILL
    assert process.stdout.closed


def test_the_children_of_one_that_has_exited_end_too() -> None:
    with subprocess_group(FAMILY, 0, stdout=subprocess.PIPE) as process:
        assert process.stdout
        child = int(process.stdout.readline())
        process.wait()
    assert gone(child)


def test_a_program_that_cannot_start_is_an_os_error() -> None:
    with pytest.raises(FileNotFoundError), subprocess_group(("/no/such/program",), 0):
        raise AssertionError("the block must not run")


@each_row("raised", [Stopped, KeyboardInterrupt])
def test_a_signal_while_the_program_starts_leaves_none(
    raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program already runs when Ctrl-C arrives, but the call that starts it has not returned. On the command line
    it is noticed where the program is waited for; elsewhere Python raises an error of its own."""
    started: list[subprocess.Popen[bytes]] = []
    start: Callable[..., None] = subprocess.Popen.__init__

    def signalled(self: subprocess.Popen[bytes], *arguments: Any, **settings: Any) -> None:
        start(self, *arguments, **settings)
        started.append(self)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)  # long enough for Python to call the handler

    monkeypatch.setattr(subprocess.Popen, "__init__", signalled)
    listening = end_on_signals() if raised is Stopped else nullcontext()
    with pytest.raises(raised), listening, subprocess_group(SLEEP, 0) as process:
        output_of(process)
        raise AssertionError("the signal is lost")
    assert started[0].returncode == -signal.SIGKILL


@each_row("listening", [end_on_signals, nullcontext])
def test_large_input_and_output_of_a_program(listening: Callable[[], Any]) -> None:
    given, slow = bytes(2**20), ("/bin/sh", "-c", "sleep 0.5; cat")
    with listening(), subprocess_group(slow, 0, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert output_of(process, given) == given


def test_a_program_may_take_no_longer_than_its_limit() -> None:
    with pytest.raises(subprocess.TimeoutExpired), subprocess_group(SLEEP, 0, stdout=subprocess.PIPE) as process:
        output_of(process, limit=0.2)
