"""Stages under a real memory limit (RLIMIT_AS, as set by `ulimit -v` and Slurm) succeed or end with one sentence."""

import importlib
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from tests.pipeline.command import ENVIRONMENT, forked
from tests.processes import PATIENCE

from bertwright import Recipe
from bertwright.check.machine import resources

LIBRARIES = ("memory allocation of", "OpenBLAS error")
"""Messages of libraries (in Rust, OpenBLAS) that abort the process themselves, which cannot be prevented."""
STAGES = {
    "corpus": ("corpus.seed=7", "bertwright.corpus.run"),
    "vocab": ("vocab.seed=7", "bertwright.vocab.run"),
    "examples": ("examples.passes=2", "bertwright.examples.run"),
    "train": ("train.phases.1.steps=7", "bertwright.train.run"),
    "evaluate": ("evaluate.length=16", "bertwright.evaluate.run"),
    "export": ("export.name=other", "bertwright.export.run"),
    "report": ("report.title=other", "bertwright.report.run"),
}


def limit(megabytes: int, module: str) -> None:
    """Lets the process have so much more memory than it has now."""
    for name in ("numpy", "bertwright.cli", "bertwright.pipeline.run", module):
        importlib.import_module(name)  # what is loaded needs no more memory later
    resources._ADDRESSES.clear()  # else the limit would be refused at the start
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="the size of a process is asked of /proc")
@pytest.mark.parametrize("megabytes", [2, 60])
@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_gets_no_memory_says_so(
    stage: str, megabytes: int, finished: Path, small_recipe: Path, tmp_path: Path
) -> None:
    run, (override, module) = Path(shutil.copytree(finished, tmp_path / "run")), STAGES[stage]
    words = ("run", small_recipe, override, "--until", stage, "--out", run)
    process = forked(tmp_path / "log", *words, before=partial(limit, megabytes, module))
    process.join(PATIENCE)
    text = (tmp_path / "log").read_text("utf-8")
    assert "Traceback" not in text, text
    if any(said in text for said in LIBRARIES):
        return
    assert process.exitcode in (0, 3), (process.exitcode, text)
    if process.exitcode:
        (said,) = (line for line in text.splitlines() if line.startswith("bertwright: "))
        assert "memory" in said, said


@pytest.mark.parametrize(
    ("verb", "kilobytes", "shown"), [("run", 2_000_000, "2.05 GB"), ("check", 1_000_000, "1.02 GB")]
)
def test_a_limit_in_which_torch_cannot_work_is_refused_before_anything_is_written(
    verb: str, kilobytes: int, shown: str, tmp_path: Path
) -> None:
    """At twice a gigabyte, a thread that gets no memory would end the process in the midst of training or export."""
    command = shlex.join([sys.executable, "-m", "bertwright.cli", verb, "smoke", "--out", str(tmp_path / "run")])
    limited = ["bash", "-c", f"ulimit -v {kilobytes}; {command}"]
    done = subprocess.run(limited, capture_output=True, text=True, env=ENVIRONMENT, timeout=PATIENCE, check=False)
    assert done.returncode == 3, done
    said = " ".join((done.stdout + done.stderr).split())
    assert f"of address space, {shown} are available. Raise the limit" in said
    assert not list(tmp_path.iterdir())


def test_the_address_space_that_a_stage_needs_grows_with_its_model() -> None:
    """A stage without torch needs no such limit, and the export more than training, because it loads transformers."""
    smoke, large = Recipe.load("smoke"), Recipe.load("smoke", ["model.size=large"])

    def needed(recipe: Recipe, *stages: str) -> float:
        (verdict,) = resources._addresses(recipe, stages, 0.0, 1.0)
        assert verdict.level == "error"
        return float(re.search(r"about ([\d.]+) GB", verdict.text)[1])  # type: ignore[index]

    assert not list(resources._addresses(smoke, ["corpus", "examples"], 0.0, 1.0))
    assert needed(smoke, "train") < needed(smoke, "train", "export") < needed(large, "export")
