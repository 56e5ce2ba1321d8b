"""A program that runs for a block ends with it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.processes import gone

from bertwright.core.running import running
from bertwright.core.signals import LEAVE, Stopped, end_on_signals

SLEEP = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)")
DEAF = (
    *SLEEP[:-1],
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)",
)
FAMILY = ("/bin/sh", "-c", "sleep 600 & echo $!")


def test_a_program_that_ends_by_itself_has_its_exit_code() -> None:
    with running((*SLEEP[:-1], "import sys; sys.exit(3)"), 0) as process:
        assert process.wait(60) == 3


@pytest.mark.parametrize(("patience", "code"), [(0.0, -signal.SIGKILL), (60.0, -signal.SIGTERM)])
def test_a_program_that_still_runs_is_ended_even_after_an_error(patience: float, code: int) -> None:
    with pytest.raises(ZeroDivisionError), running(SLEEP, patience) as process:
        raise ZeroDivisionError
    assert process.returncode == code


def test_one_that_ignores_the_signal_is_killed() -> None:
    with running(DEAF, 0.1, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
    assert process.returncode == -signal.SIGKILL
    assert process.stdout.closed


def test_the_children_of_one_that_has_exited_end_too() -> None:
    with running(FAMILY, 0, stdout=subprocess.PIPE) as process:
        assert process.stdout
        child = int(process.stdout.readline())
        process.wait()
    assert gone(child)


def test_a_program_that_cannot_be_started_is_an_error_of_the_system() -> None:
    with pytest.raises(FileNotFoundError), running(("/no/such/program",), 0):
        raise AssertionError("the block must not run")


def exits(number: int, frame: object) -> None:
    sys.exit(1)


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, Stopped), (signal.SIGTERM, Stopped), (LEAVE, SystemExit)]
)
def test_a_signal_while_the_program_starts_leaves_none(
    number: signal.Signals, raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program already runs when the signal arrives, but the call that starts it has not returned."""
    started: list[subprocess.Popen[bytes]] = []
    start: Callable[..., None] = subprocess.Popen.__init__

    def signalled(self: subprocess.Popen[bytes], *arguments: Any, **settings: Any) -> None:
        start(self, *arguments, **settings)
        started.append(self)
        os.kill(os.getpid(), number)
        time.sleep(0.01)  # long enough for Python to call the handler

    monkeypatch.setattr(subprocess.Popen, "__init__", signalled)
    before = signal.signal(LEAVE, exits)
    try:
        with pytest.raises(raised), end_on_signals(), running(SLEEP, 0):
            raise AssertionError("the block must not run")
    finally:
        signal.signal(LEAVE, before)
    assert started[0].returncode == -signal.SIGKILL
