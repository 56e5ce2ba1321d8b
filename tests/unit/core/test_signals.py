"""What signals do to a process that is asked to stop."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.processes import PATIENCE, signal_again
from tests.rows import each_row

from bertwright.core.errors import DivergedError, Interrupted
from bertwright.core.signals import (
    ASKING,
    Stopped,
    check_stop,
    delay_signals,
    end_on_signals,
    exit_message,
    forward_signals,
    pause,
    stop_on_signals,
)

pytestmark = pytest.mark.heavy

BUSY = """
import hashlib, threading
from bertwright.core.signals import end_on_signals
with end_on_signals():
    threading.Timer(0.5, lambda: print("here", flush=True)).start()
    hashlib.pbkdf2_hmac("sha512", b"", b"", 10**9)  # native code that hears nothing, for a quarter of an hour
"""
DEAF = """
import signal, time
from bertwright.core.signals import end_on_signals, pause
with end_on_signals():
    print("here", flush=True)
    pause(1)
    print("done")
"""
SAVING = """
import time
from bertwright.core.signals import end_on_signals, stop_on_signals
with end_on_signals(), stop_on_signals() as stop_requested:
    print("here", flush=True)
    while not stop_requested():
        time.sleep(0.01)
    print("saving", flush=True)
    time.sleep(600)
"""
EATEN = """
import os, signal, sys
from pydantic import BaseModel, field_validator
from bertwright.core.signals import check_stop, end_on_signals
class Shape(BaseModel):
    size: int
    @field_validator("size")
    @classmethod
    def check(cls, size):
        os.kill(os.getpid(), signal.SIGTERM)
        return size
with end_on_signals():
    print(Shape(size=1))
    try:
        check_stop()
    except BaseException as error:
        print(type(error).__name__)
"""
PROGRAM = """
import subprocess, sys, time
from bertwright.core.subprocess_group import subprocess_group
from bertwright.core.signals import end_on_signals
with end_on_signals(), subprocess_group(["sleep", "600"], 0) as process:
    print("here", flush=True)
    print(process.pid, flush=True)
    time.sleep(600)
"""
OVER = """
import time
from bertwright.core.signals import end_on_signals
with end_on_signals(process_ends=True):
    pass
print("here", flush=True)
time.sleep(1)
"""


@each_row("number", ASKING)
def test_a_stop_signal_is_raised_at_a_safe_point(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Stopped) as stop, end_on_signals():
        os.kill(os.getpid(), number)
        pause(10)
    message, code = exit_message(stop.value)
    assert (message, code) == (f"stopped by {number.name}. What is finished is kept: run the same command again.", 75)
    assert signal.getsignal(number) == before


def test_ctrl_c_has_its_own_code() -> None:
    with pytest.raises(Stopped) as stop, end_on_signals():
        os.kill(os.getpid(), signal.SIGINT)
        pause(10)
    assert exit_message(stop.value) == ("interrupted. Run the same command again to continue.", 130)


def test_a_stop_is_raised_once_and_not_while_training_saves() -> None:
    with end_on_signals():
        with stop_on_signals() as stop_requested:
            assert not stop_requested()
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop_requested()
            check_stop()
        with pytest.raises(Stopped):
            check_stop()
        check_stop()  # while the program cleans up


@each_row("error", [Interrupted("saved"), DivergedError("diverged")])
def test_an_error_that_ends_training_is_the_one_reported(error: Exception) -> None:
    with end_on_signals():
        with pytest.raises(type(error)), stop_on_signals():
            os.kill(os.getpid(), signal.SIGTERM)
            raise error
        check_stop()


@each_row(("numbers", "code"), [((signal.SIGINT,), 130), ((signal.SIGTERM, signal.SIGHUP), 75)])
@each_row("in_program", [True, False])
def test_stopped_training_has_the_code_of_the_first_signal(
    numbers: tuple[int, ...], code: int, in_program: bool
) -> None:
    def train() -> None:
        with stop_on_signals():
            for number in numbers:
                os.kill(os.getpid(), number)
            raise Interrupted("everything is saved")

    with pytest.raises(Interrupted) as ended:
        if in_program:
            with end_on_signals():
                train()
        else:
            train()
    assert ended.value.exit_code == code


def test_in_python_a_second_ctrl_c_is_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.core.signals.SAME", 0.0)
    with pytest.raises(KeyboardInterrupt), stop_on_signals():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)


def test_a_signal_just_before_it_is_handed_on_is_handed_on_too() -> None:
    taken: list[int] = []
    with end_on_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        with forward_signals(taken.append):
            os.kill(os.getpid(), signal.SIGUSR1)
        check_stop()
    assert taken == [signal.SIGTERM, signal.SIGUSR1]


def test_a_delayed_signal_counts_once() -> None:
    with end_on_signals():
        with delay_signals():
            os.kill(os.getpid(), signal.SIGINT)
            check_stop()
        with pytest.raises(Stopped):
            check_stop()


def started(code: str, **settings: bool) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", code], stdout=-1, stderr=-1, text=True, **settings)  # type: ignore[call-overload]
    assert process.stdout.readline() == "here\n"
    return process  # type: ignore[no-any-return]


@each_row(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_a_long_library_call_does_not_delay_the_stop(number: signal.Signals, code: int) -> None:
    process = started(BUSY)
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert err.strip().startswith("bertwright: ") and err.count("\n") == 2


@each_row(("numbers", "code"), [((15, 15), 75), ((2, 2), 130), ((15, 2), 130)])
def test_a_second_signal_ends_a_process_that_saves(numbers: tuple[int, int], code: int) -> None:
    process = started(SAVING)
    process.send_signal(numbers[0])
    assert process.stdout and process.stdout.readline() == "saving\n"
    signal_again(process, numbers[1])
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert f"ended at once by a second signal, {signal.Signals(numbers[1]).name}. What is finished is kept" in err


def test_no_signal_surfaces_inside_a_library() -> None:
    done = subprocess.run([sys.executable, "-c", EATEN], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("size=1\nStopped\n", "")


def test_programs_end_with_the_process() -> None:
    process = started(PROGRAM)
    assert process.stdout
    sleeping = Path(f"/proc/{process.stdout.readline().strip()}")
    assert sleeping.exists()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 75
    while sleeping.exists() and " Z " not in (sleeping / "stat").read_text():
        time.sleep(0.01)


def test_at_the_end_of_a_process_a_signal_changes_nothing() -> None:
    process = started(OVER)
    for number in (*ASKING, signal.SIGINT):
        process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """As nohup does with SIGHUP, and a shell with SIGINT for what it starts in the background."""
    process = started(f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{DEAF}")
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (0, "done\n", "")
