"""`python -m bertwright`, for environments where the program `bertwright` is not on the path."""

import subprocess
import sys

import pytest

from bertwright import __version__


@pytest.mark.parametrize("word", ["--version", "recipes"])
def test_the_package_is_the_command_line(word: str) -> None:
    done = subprocess.run([sys.executable, "-m", "bertwright", word], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (__version__ if word == "--version" else "demo") in done.stdout
