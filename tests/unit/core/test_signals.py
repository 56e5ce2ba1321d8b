"""What signals do to a process that is asked to stop."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bertwright.core.errors import Interrupted
from bertwright.core.signals import ASKING, Stopped, end_on_signals, farewell, stop_on_signals

BUSY = """
import hashlib, threading
from bertwright.core.errors import Interrupted
from bertwright.core.signals import end_on_signals
with end_on_signals():
    threading.Timer(0.5, lambda: print("here", flush=True)).start()
    hashlib.pbkdf2_hmac("sha512", b"", b"", 10**9)  # native code that hears nothing, for a quarter of an hour
"""
DEAF = """
import signal, time
from bertwright.core.errors import Interrupted
from bertwright.core.signals import end_on_signals
with end_on_signals():
    print("here", flush=True)
    time.sleep(1)
    print("done")
"""


@pytest.mark.parametrize("number", ASKING)
def test_a_signal_that_asks_to_stop_is_raised_and_named(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Stopped) as stop, end_on_signals():
        os.kill(os.getpid(), number)
        time.sleep(10)
    message, code = farewell(stop.value)
    assert (message, code) == (f"stopped by {number.name}. What is finished is kept: run the same command again.", 75)
    assert signal.getsignal(number) == before


def test_ctrl_c_has_its_own_code() -> None:
    with pytest.raises(Stopped) as stop, end_on_signals():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
    assert farewell(stop.value) == ("interrupted. Run the same command again to continue.", 130)


@pytest.mark.parametrize("number", [*ASKING, signal.SIGINT])
def test_training_is_only_asked(number: signal.Signals) -> None:
    with end_on_signals(), stop_on_signals() as stop_requested:
        assert not stop_requested()
        os.kill(os.getpid(), number)
        assert stop_requested()
        with pytest.raises(Stopped):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)


@pytest.mark.parametrize(("numbers", "code"), [((signal.SIGINT,), 130), ((signal.SIGTERM, signal.SIGHUP), 75)])
def test_training_that_was_asked_has_the_code_of_the_first_signal(numbers: tuple[int, ...], code: int) -> None:
    with pytest.raises(Interrupted) as ended, end_on_signals(), stop_on_signals():
        for number in numbers:
            os.kill(os.getpid(), number)
        raise Interrupted("everything is saved")
    assert ended.value.exit_code == code


def started(code: str, **settings: bool) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", code], stdout=-1, stderr=-1, text=True, **settings)  # type: ignore[call-overload]
    assert process.stdout.readline() == "here\n"
    return process  # type: ignore[no-any-return]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_a_library_that_computes_for_long_does_not_hold_up_the_end(number: signal.Signals, code: int) -> None:
    process = started(BUSY)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert err.strip().startswith("bertwright: ") and err.count("\n") == 2


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """As nohup does with SIGHUP, and a shell with SIGINT for what it starts in the background."""
    process = started(f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{DEAF}")
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "done\n", "")
