"""Stages under a real memory limit (RLIMIT_AS, as set by `ulimit -v` and Slurm) succeed or end with one sentence."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pipeline.command import ENVIRONMENT

from bertwright import Recipe
from bertwright.check.machine.resources import _addresses

LIMITED = """
import resource, sys
import numpy, bertwright.cli, bertwright.pipeline.run, {modules}  # what is loaded needs no more memory later
import bertwright.check.machine.resources
bertwright.check.machine.resources._ADDRESSES.clear()  # else the limit would be refused at the start
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv.pop(1)) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
bertwright.cli.main()
"""
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


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="the size of a process is asked of /proc")
@pytest.mark.parametrize("megabytes", [2, 60])
@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_gets_no_memory_says_so(
    stage: str, megabytes: int, finished: Path, small_recipe: Path, tmp_path: Path
) -> None:
    run, (override, module) = Path(shutil.copytree(finished, tmp_path / "run")), STAGES[stage]
    program = LIMITED.format(modules=module)
    arguments = [str(megabytes), "run", str(small_recipe), override, "--until", stage, "--out", str(run)]
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=300, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    if any(said in done.stderr for said in LIBRARIES):
        return
    assert done.returncode in (0, 3), (done.returncode, done.stderr)
    if done.returncode:
        (said,) = (line for line in done.stderr.splitlines() if line.startswith("bertwright: "))
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
    done = subprocess.run(limited, capture_output=True, text=True, env=ENVIRONMENT, timeout=300, check=False)
    assert done.returncode == 3, done
    said = " ".join((done.stdout + done.stderr).split())
    assert f"of address space, {shown} are available. Raise the limit" in said
    assert not list(tmp_path.iterdir())


def test_the_address_space_that_a_stage_needs_grows_with_its_model() -> None:
    """A stage without torch needs no such limit, and the export more than training, because it loads transformers."""
    smoke, large = Recipe.load("smoke"), Recipe.load("smoke", ["model.size=large"])

    def needed(recipe: Recipe, *stages: str) -> float:
        (verdict,) = _addresses(recipe, stages, 0.0, 1.0)
        assert verdict.level == "error"
        return float(re.search(r"about ([\d.]+) GB", verdict.text)[1])  # type: ignore[index]

    assert not list(_addresses(smoke, ["corpus", "examples"], 0.0, 1.0))
    assert needed(smoke, "train") < needed(smoke, "train", "export") < needed(large, "export")
