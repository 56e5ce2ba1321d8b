"""Why a child process failed, and children that answer line by line."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.child_process import answering_child, program, run_child, why_failed
from bertwright.core.errors import DataError
from bertwright.core.signals import PROGRAMS


@each_row(
    ("out", "log", "code", "says"),
    [
        (b'x\n{"error": {"message": "no disk"}}\n', b"else\n", 1, "no disk"),
        (b'{"stages": []}', b"first\nlast \xff\n\n", 2, "last \ufffd"),
        (b"", b"", 3, "exit code 3"),
        (b"", b" \n", 3, "exit code 3"),
        (b"", b"some line", -9, "ended by SIGKILL; it probably ran out of memory"),
        (b"", b"", -15, "ended by SIGTERM"),
    ],
)
def test_why_a_process_failed(out: bytes, log: bytes, code: int, says: str) -> None:
    assert why_failed(out, log, code) == says


def test_a_child_takes_no_file_of_the_working_folder_for_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("json", "random", "typer", "torch", "numpy"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} of the working folder')")
    assert run_child(["--version"], tmp_path / "log").code == 0, (tmp_path / "log").read_text()
    # Launchers such as torchrun start it without -P.
    words = [word for word in program(1) if word != "-P"]
    started = subprocess.run([*words, "--version"], check=False, capture_output=True)
    assert started.returncode == 0, started.stderr


def test_ranks_that_print_at_once_may_share_a_line() -> None:
    line = b'{"error": {"code": 3, "message": "the batch is too large", "hint": ""}}'
    for out in (line + line + b"\n\n", b"\n" + line + b"\n", line + b'{"error": {"co', b'{"error": {"co' + line):
        assert why_failed(out, b"", 3) == "the batch is too large"
    stopped = line.replace(b"3", b"75").replace(b"the batch is too large", b"stopped")
    assert why_failed(line + stopped, b"", 3) == "the batch is too large"


@each_row(
    ("code", "reason"),
    [
        ("raise SystemExit(3)", "child ended early: exit code 3"),
        ("import sys; sys.exit('first\\nno memory')", "child ended early: no memory"),
        ("input(); raise ValueError('bad')", "child ended early: ValueError: bad"),
        ("import os; os.kill(os.getpid(), 9)", "child ended early: ended by SIGKILL; it probably ran out of memory"),
    ],
)
def test_a_child_that_ends_without_an_answer(code: str, reason: str) -> None:
    with answering_child([sys.executable, "-c", code], "child") as ask, pytest.raises(DataError, match=reason):
        ask(b"1")


def test_a_child_that_answers_ends_with_its_block() -> None:
    code = "import os, time; print(input(), os.getpid(), flush=True); time.sleep(600)"
    with answering_child([sys.executable, "-c", code], "child") as ask:
        answer, process = ask(b"2").split()
        assert answer == b"2"
        os.kill(int(process), 0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(process), 0)


def test_a_child_that_is_silent_ends_too() -> None:
    with answering_child([sys.executable, "-c", "import time; time.sleep(600)"], "child", 0.1) as ask:
        (process,) = PROGRAMS
        with pytest.raises(DataError, match=r"child has not answered for 0\.1 seconds"):
            ask(b"1")
    assert process.returncode == -signal.SIGKILL


def test_an_answer_may_be_long() -> None:
    code = "print('x' * 5_000_000, flush=True); print(input())"
    with answering_child([sys.executable, "-c", code], "child") as ask:
        assert len(ask(b"2")) == 5_000_001
        assert ask(b"") == b"2\n"
