"""Peak memory of the corpus stage, per worker, and of the demo's training."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.synthetic import main as make_dump
from tests.pipeline.command import ENVIRONMENT, PROGRAM, RECIPES

from bertwright.sample import SAMPLE

GIGABYTE = 10**9
ON_LINUX = pytest.mark.skipif(os.uname().sysname != "Linux", reason="ru_maxrss is in other units elsewhere")


MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def peak_memory(*arguments: object) -> int:
    """The peak resident set, in bytes, of the command and its children.

    A process inherits the peak of its parent, so a small process stands between it and the tests' process.
    """
    command = [sys.executable, "-c", MEASURED, *PROGRAM, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout) * 1024


@ON_LINUX
def test_the_corpus_stage_and_the_demos_training_stay_below_a_gigabyte(tmp_path: Path) -> None:
    demo, out = RECIPES / "demo.toml", ("--out", tmp_path / "demo")
    assert peak_memory("corpus", demo, *out) < GIGABYTE
    few = ("train.phases.0.steps=12", "train.evaluate_every=6")  # memory grew with steps and scorings
    peak = peak_memory("run", demo, *few, "--until", "train", *out)
    counts = json.loads((tmp_path / "demo" / "train" / "manifest.json").read_text())["counts"]
    # The kernel counts pages in batches per thread, so a process may read slightly more than its peak.
    assert 50e6 < counts["peak_memory_bytes"] <= 1.01 * peak < GIGABYTE


@ON_LINUX
@pytest.mark.parametrize("megabytes", [8, pytest.param(300, marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_dump(megabytes: int, tmp_path: Path) -> None:
    dump = tmp_path / "large.xml"
    make_dump(str(SAMPLE), str(dump), str(megabytes))
    settings = (f"corpus.source={dump}", "corpus.language=hu", "corpus.workers=2")
    peak = peak_memory("corpus", RECIPES / "demo.toml", *settings, "--out", tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "corpus" / "manifest.json").read_text())
    assert peak < GIGABYTE / 4
    assert manifest["counts"]["source_bytes"] > megabytes * 0.99e6
    assert manifest["disk"]["bytes"] == sum(file["size"] for file in manifest["files"].values())
    assert manifest["disk"]["scratch_bytes"] > manifest["disk"]["bytes"] / 2
