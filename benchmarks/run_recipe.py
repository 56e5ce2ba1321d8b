"""Run a recipe through the command line in a separate process, for the benchmarks that train.

A separate process measures what a user starts: the waiting policy of threads is set before torch is loaded, and the
benchmark itself takes none of its memory.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_REFUSED = 2
"""The exit code of a recipe that is rejected before work starts."""


class Refused(Exception):
    """A recipe that cannot run here; the message is that of the rejection."""


def run_recipe(recipe: Path, keys: Sequence[str], out: Path, until: str) -> None:
    """Run the stages of `recipe` up to `until` in `out`; finished stages are skipped and interrupted ones continue.

    `keys` are `key=value`, as on the command line. Raises `Refused` if the recipe is rejected, and `SystemExit` if the
    command fails in another way.
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
"""The stages that a training builds on."""


def linked(made: Path, run: Path) -> None:
    """Link the stages up to examples of the run folder `made` into the folder `run`, file by file; each stage there is
    complete or absent."""
    for stage in MADE:
        if not (run / stage).exists():
            draft = run / f"{stage}.part"
            shutil.rmtree(draft, ignore_errors=True)
            shutil.copytree(made / stage, draft, copy_function=os.link)
            draft.rename(run / stage)
