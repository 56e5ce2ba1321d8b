"""Peak memory of the corpus stage, per worker, and of the demo's training."""

import json
import os
from pathlib import Path

import pytest
from tests.pipeline.command import RECIPES, start

GIGABYTE = 10**9


def peak_memory(*arguments: object) -> int:
    """The largest resident set, in bytes, that the command or one of its children ever had."""
    process = start(*arguments)
    with process:
        out, err = process.stdout, process.stderr
        assert out is not None and err is not None
        said = err.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, said
    return usage.ru_maxrss * 1024


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="ru_maxrss is in other units elsewhere")
def test_the_corpus_stage_and_the_demos_training_stay_below_a_gigabyte(tmp_path: Path) -> None:
    demo, out = RECIPES / "demo.toml", ("--out", tmp_path / "demo")
    assert peak_memory("corpus", demo, *out) < GIGABYTE
    few = ("train.phases.0.steps=30", "train.evaluate_every=15")  # memory was seen to grow with steps and scorings
    peak = peak_memory("run", demo, *few, "--until", "train", *out)
    counts = json.loads((tmp_path / "demo" / "train" / "manifest.json").read_text())["counts"]
    assert 50e6 < counts["peak_memory_bytes"] <= peak < GIGABYTE
