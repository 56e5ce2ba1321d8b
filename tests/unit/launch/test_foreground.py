"""Commands in the foreground: their order, environment and exit codes, with programs of this machine."""

import signal
from pathlib import Path

import pytest

from bertwright._version import __version__
from bertwright.launch.foreground import run_in_order, run_on_terminal


def shell(text: str) -> str:
    return f"sh -c '{text}'"


def test_commands_run_one_after_another_with_the_variables_of_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "kept")
    log = tmp_path / "log"
    run_in_order([shell(f"echo $A $OURS >> {log}"), shell(f"echo second >> {log}")], {"A": "of the place"})
    assert log.read_text() == "of the place kept\nsecond\n"


@pytest.mark.parametrize(("text", "code"), [("exit 7", 7), ("kill -TERM $$", 128 + signal.SIGTERM)])
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


def test_our_program_runs_with_this_interpreter_whatever_the_path_has(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "bertwright"
    other.write_text("#!/bin/sh\necho another environment\n")
    other.chmod(0o755)
    run_in_order(["bertwright --version"], {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert __version__ in capfd.readouterr().out
