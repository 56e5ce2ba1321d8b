"""The tests of `interpreted`, in a process where Triton interprets its functions."""

import os
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.version import Version

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="they are collected by this process"),
]


@pytest.mark.skipif(not find_spec("triton"), reason="Triton is not installed")
def test_kernels_have_the_numbers_of_their_formulas() -> None:
    if Version(metadata.version("triton")) < Version("3.7") and Version(metadata.version("numpy")) >= Version("2.4"):
        pytest.skip("before 3.7, Triton's interpreter converts arrays to numbers as NumPy 2.4 no longer allows")
    files = Path(__file__).with_name("interpreted")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--no-header", str(files)]
    done = subprocess.run(command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
