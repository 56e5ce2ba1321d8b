"""Runs a recipe by the command line, in a process of its own: for the benchmarks that train.

In a process of its own, because what is measured is what a user starts: how its threads wait is settled before torch is
loaded, and nothing of the benchmark stands in its memory.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_REFUSED = 2
"""The exit code of a recipe that is refused before work starts."""


class Refused(Exception):
    """A recipe that cannot be run here, in the words it was refused with."""


def run_recipe(recipe: Path, keys: Sequence[str], out: Path, until: str) -> None:
    """Make the stages of `recipe` up to `until` in `out`; what is done is skipped, what is begun goes on.

    `keys` are `key=value`, as on the command line. Raises `Refused` where the recipe is refused, and `SystemExit` where
    the command ends with another error.
    """
    command = [sys.executable, "-m", "bertwright.cli", "run", str(recipe), *keys, "--out", str(out), "--until", until]
    last = "it said nothing"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            print(line, end="", file=sys.stderr, flush=True)
            last = line.strip() or last
    if process.returncode == _REFUSED:
        raise Refused(last.removeprefix("bertwright: "))
    if process.returncode:
        raise SystemExit(f"bertwright run {recipe.name} ended with exit code {process.returncode}: {last}")


MADE = ("corpus", "vocab", "examples")
"""The stages that a training starts from."""


def linked(made: Path, run: Path) -> None:
    """The stages up to examples of the run folder `made` in the folder `run`, as links to their files; each of them is
    whole there or absent."""
    for stage in MADE:
        if not (run / stage).exists():
            draft = run / f"{stage}.part"
            shutil.rmtree(draft, ignore_errors=True)
            shutil.copytree(made / stage, draft, copy_function=os.link)
            draft.rename(run / stage)
