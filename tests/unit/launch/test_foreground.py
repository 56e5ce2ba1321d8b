"""Commands that run one after another here: order, environment, signals and exit codes."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import PATIENCE, gone, signal_again
from tests.rows import each_row

from bertwright.core import __version__
from bertwright.core.signals import Stopped, end_on_signals
from bertwright.launch import foreground
from bertwright.launch.foreground import run_in_order, run_on_terminal

pytestmark = pytest.mark.heavy


def shell(text: str) -> str:
    return f"sh -c '{text}'"


def test_commands_run_in_order_with_the_places_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "kept")
    log = tmp_path / "log"
    run_in_order([shell(f"echo $A $OURS >> {log}"), shell(f"echo second >> {log}")], {"A": "of the place"})
    assert log.read_text() == "of the place kept\nsecond\n"


@each_row(("text", "code"), [("exit 7", 7), ("kill -TERM $$", 128 + signal.SIGTERM)])
def test_the_first_failure_ends_the_run_with_its_code(text: str, code: int, tmp_path: Path) -> None:
    """As a shell does, a signal is 128 and its number."""
    for run in (
        lambda: run_in_order([shell(text), shell(f"touch {tmp_path}/next")], {}),
        lambda: run_on_terminal(shell(text)),
    ):
        with pytest.raises(SystemExit) as left:
            run()
        assert left.value.code == code
    assert not (tmp_path / "next").exists()
    run_on_terminal("true")


def test_bertwright_runs_with_this_interpreter(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "bertwright"
    other.write_text("#!/bin/sh\necho another environment\n")
    other.chmod(0o755)
    run_in_order(["bertwright --version"], {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert __version__ in capfd.readouterr().out


def program(monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> None:
    """Make `name` a Python program; its parent, which runs the commands, is `parent`."""
    start = "import os, signal, sys, time; parent = os.getppid()\n"
    monkeypatch.setitem(foreground._PROGRAMS, name, (sys.executable, "-c", start + code))


def ended(*commands: str) -> int | str | None:
    with pytest.raises(SystemExit) as left:
        run_in_order(commands, {})
    return left.value.code


WAITS = """
signal.signal(signal.{heard}, lambda *_: sys.exit({code}))
os.kill(parent, signal.{sent})
time.sleep(60)
"""
"""A program that is told to stop, once its handler is set."""


@each_row(
    ("sent", "heard", "code", "becomes"),
    [
        ("SIGTERM", "SIGTERM", 1, 75),
        ("SIGHUP", "SIGHUP", 1, 75),
        ("SIGINT", "SIGINT", 1, 130),
        ("SIGUSR1", "SIGTERM", 1, 75),  # torchrun has no handler for it, and would leave its ranks behind
        ("SIGTERM", "SIGTERM", 0, 0),
    ],
)
def test_stopped_torchrun_has_the_code_of_a_stopped_run(
    sent: str, heard: str, code: int, becomes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(monkeypatch, "torchrun", WAITS.format(sent=sent, heard=heard, code=code))
    if becomes:
        assert ended("torchrun x") == becomes
    else:
        run_in_order(["torchrun x"], {})


@each_row("code", [1, 6])
def test_a_failure_without_a_signal_keeps_its_code(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program(monkeypatch, "torchrun", f"sys.exit({code})")
    assert ended("torchrun x") == code


def test_a_run_that_is_stopped_keeps_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    program(monkeypatch, "bertwright", WAITS.format(sent="SIGUSR1", heard="SIGUSR1", code=4))
    assert ended("bertwright x") == 4


def test_a_program_stopped_before_its_handler_did_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    program(monkeypatch, "bertwright", "os.kill(parent, signal.SIGTERM); time.sleep(60)")
    assert ended("bertwright x") == 75


def test_a_signal_as_a_command_ends_is_seen_before_the_next(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ignores = "signal.signal(signal.SIGTERM, signal.SIG_IGN); os.kill(parent, signal.SIGTERM)"
    program(monkeypatch, "bertwright", f"{ignores}; sys.exit(0)")
    assert ended("bertwright x", shlex.join(["touch", str(tmp_path / "begun")])) == 75
    assert not (tmp_path / "begun").exists()


PARENT = """
import sys
from bertwright.core.signals import end_on_signals
from bertwright.launch import foreground
with end_on_signals(process_ends=True):
    getattr(foreground, sys.argv[1])(*eval(sys.argv[2]))
"""


@each_row("deaf", ["kill -STOP $$", "wait; wait"])
@each_row(
    ("way", "number", "code"),
    [
        ("run_in_order", signal.SIGTERM, 75),
        ("run_in_order", signal.SIGINT, 130),
        ("run_on_terminal", signal.SIGTERM, 75),  # there, Ctrl-C is the command's
    ],
)
def test_a_second_signal_kills_a_hanging_command(
    way: str, deaf: str, number: signal.Signals, code: int, tmp_path: Path
) -> None:
    """With a program that it started in a session of its own, as torchrun starts ranks."""
    script = tmp_path / "deaf"
    script.write_text(f"trap '' TERM INT\nsetsid sh -c 'echo $$ $PPID; exec sleep 600' &\nsleep 0.2\n{deaf}\n")
    line = f"sh {script}"
    words = [sys.executable, "-c", PARENT, way, repr(([line], {}) if way == "run_in_order" else (line,))]
    process = subprocess.Popen(words, stdout=-1, stderr=-1, text=True, process_group=0)
    assert process.stdout
    sleeping, command = process.stdout.readline().split()
    process.send_signal(number)
    signal_again(process, number)
    _, err = process.communicate(timeout=PATIENCE)  # until nobody has its standard error open, the programs included
    assert process.returncode == code
    name = "sh" if way == "run_in_order" else "the command on the terminal"
    said = f"bertwright: ended by a second signal, {number.name}; killed what did not end: {name} (process {command})."
    assert err.strip().startswith(said)
    assert gone(int(sleeping)) and gone(int(command))


def test_other_signals_reach_the_interactive_command(monkeypatch: pytest.MonkeyPatch) -> None:
    code = f"{sys.executable} -c 'import os, signal, time; os.kill(os.getppid(), signal.SIG{{}}); time.sleep({{}})'"
    with pytest.raises(SystemExit) as left, end_on_signals():
        run_on_terminal(code.format("HUP", 60))
    assert left.value.code == 75
    with end_on_signals():
        run_on_terminal(code.format("INT", 0.5))


def test_a_signal_while_a_command_starts_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Started(foreground.subprocess.Popen):  # type: ignore[name-defined, misc]
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)
            started.append(self)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(foreground.subprocess, "Popen", Started)
    try:
        with end_on_signals():
            assert ended("sleep 60") == 75
        assert started[0].returncode == -signal.SIGTERM
    except Stopped:
        pytest.fail("the command is left behind")
    finally:
        started[0].kill()
