"""`python -m bertwright`, for environments where the program `bertwright` is not on the path."""

import os
import subprocess
import sys

import pytest
from tests.rows import each_row

from bertwright import __version__

pytestmark = pytest.mark.heavy


def test_letters_that_a_terminal_lacks_are_escaped() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    words = ["bertwright", "launch", "local", "smoke", "--out", "runs/ű"]
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, check=False, env=environment)
    assert done.returncode == 0 and rb"runs/\u0171" in done.stdout, done.stderr


@each_row("word", ["--version", "recipes"])
def test_the_package_is_the_command_line(word: str) -> None:
    done = subprocess.run([sys.executable, "-m", "bertwright", word], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (__version__ if word == "--version" else "demo") in done.stdout


EARLY = """
import os, signal, sys
class Signalled:
    def find_spec(self, name, path=None, target=None):
        if name == "bertwright.core.signals":
            os.kill(os.getpid(), signal.{name})
sys.meta_path.insert(0, Signalled())
from bertwright.cli import program
sys.argv = ["bertwright", "recipes"]
program()
"""


@each_row(("name", "code"), [("SIGTERM", 75), ("SIGUSR1", 75), ("SIGINT", 130)])
def test_a_signal_before_there_are_handlers_waits_for_them(name: str, code: int) -> None:
    done = subprocess.run([sys.executable, "-c", EARLY.format(name=name)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert "un the same command again" in done.stderr and "Traceback" not in done.stderr
