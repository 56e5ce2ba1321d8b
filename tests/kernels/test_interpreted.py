"""The tests of `interpreted`, in a process where Triton interprets its functions."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="they are collected by this process"),
]


def test_kernels_have_the_numbers_of_their_formulas() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    files = Path(__file__).with_name("interpreted")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--no-header", str(files)]
    done = subprocess.run(command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
