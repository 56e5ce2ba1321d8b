"""`python -m bertwright`, for environments where the program `bertwright` is not on the path."""

import os
import subprocess
import sys

import pytest

from bertwright import __version__


def test_a_terminal_without_the_letters_of_a_name_shows_their_numbers() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    words = ["bertwright", "launch", "local", "smoke", "--out", "runs/ű"]
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, check=False, env=environment)
    assert done.returncode == 0 and rb"runs/\u0171" in done.stdout, done.stderr


@pytest.mark.parametrize("word", ["--version", "recipes"])
def test_the_package_is_the_command_line(word: str) -> None:
    done = subprocess.run([sys.executable, "-m", "bertwright", word], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (__version__ if word == "--version" else "demo") in done.stdout
