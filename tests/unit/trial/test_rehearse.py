"""How a part of a rehearsal that fails is told."""

import sys
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core import child_process
from bertwright.trial import rehearse


@each_row(
    ("ends", "code", "said"), [("os.kill(os.getpid(), 9)", 137, "ended by SIGKILL"), ("sys.exit(3)", 3, "exit code 3")]
)
def test_the_exit_code_is_the_one_that_a_shell_would_have_seen(
    ends: str, code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "program", lambda ranks: (sys.executable, "-c", f"import os, sys; {ends}"))
    with (tmp_path / "lock").open("w") as lock:
        part = rehearse._run("train", ["train"], rehearse.Scratch(tmp_path, lock.fileno()))
    assert part.code == code and part.text.startswith(said)
