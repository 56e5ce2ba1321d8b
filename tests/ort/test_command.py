"""The command line in the environment of `make ort-env`, which lacks what prepares data: `make test-ort`."""

import json
import subprocess
import sys

import pytest

from bertwright.check.recipe.packages import REQUIRED
from bertwright.train.graph.packages import missing_ortmodule

if missing_ortmodule():
    pytest.skip("needs the environment of make ort-env: make test-ort", allow_module_level=True)


def test_check_says_which_packages_prepare_the_data_elsewhere() -> None:
    command = [sys.executable, "-m", "bertwright.cli", "check", "--json"]
    done = subprocess.run([*command, "smoke"], capture_output=True, text=True, check=False)
    assert done.returncode == 5, done.stderr
    errors = [verdict for verdict in json.loads(done.stdout)["verdicts"] if verdict["level"] == "error"]
    lacking = [name for name in REQUIRED if any(f"the package {name}," in error["text"] for error in errors)]
    assert "zstandard" in lacking and "torch" not in lacking and len(lacking) == len(errors)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    verdicts = {verdict["about"]: verdict for verdict in json.loads(done.stdout)["verdicts"]}
    assert done.returncode == 0 and verdicts["torch"]["text"].startswith("2.3.1")
