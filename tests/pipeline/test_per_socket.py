"""`train --per-socket` as a command: two ranks on what it detects as two sockets, compared with one process."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pipeline.command import ENVIRONMENT, ROOT
from tests.pipeline.conftest import Call
from tests.pipeline.test_ranks import OVERRIDES, assert_same_training, metrics

CPUS = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
pytestmark = pytest.mark.skipif(len(CPUS) < 2, reason="two processors are needed, which only Linux tells")
PROGRAM = """
import os, sys
from pathlib import Path
from bertwright.cli.app import main
from bertwright.core import sockets
sockets.SYSTEM = Path({system!r})
os.sched_setaffinity(0, {cpus!r})
sys.argv = ["bertwright", *{arguments!r}]
main()
"""


def per_socket(system: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command on a simulated machine with two sockets of one processor each."""
    for number, cpu in enumerate(CPUS[:2]):
        topology = system / "cpu" / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True, exist_ok=True)
        (topology / "physical_package_id").write_text(f"{number}\n")
        (topology / "core_cpus_list").write_text(f"{cpu}\n")
    program = PROGRAM.format(system=str(system), cpus=CPUS[:2], arguments=[*map(str, arguments)])
    command = [sys.executable, "-c", program]
    # Ranks communicate over loopback, which the environment of the other tests refuses.
    environment = {**ENVIRONMENT, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_two_sockets_train_as_one_process(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path, call: Call
) -> None:
    alone, together = small_examples(tmp_path / "alone"), small_examples(tmp_path / "together")
    one = call("train", small_recipe, *OVERRIDES, "--out", alone)
    assert one.code == 0, one.err
    arguments = ("train", small_recipe, *OVERRIDES, "train.device=cpu", "--per-socket", "--out", together)
    two = per_socket(tmp_path / "system", *arguments)
    assert two.returncode == 0, two.stderr
    assert two.stdout == f"{together}/train\n", "the result is named once"
    assert "train: one rank on each socket, bound to its cores: socket 0 (1), socket 1 (1)" in two.stderr
    counts = json.loads((together / "train" / "manifest.json").read_text())["counts"]
    assert counts["ranks"] == 2 and counts["sessions"][0]["threads"] == 1
    assert_same_training(metrics(together), metrics(alone))


def test_a_rank_that_fails_gives_its_exit_code(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    """Both ranks miss the examples; each says so, and the command repeats what it means."""
    folder = tmp_path / "empty"
    ended = per_socket(tmp_path / "system", "train", small_recipe, "train.device=cpu", "--per-socket", "--out", folder)
    assert ended.returncode == 4, ended.stderr
    assert "of 2 (socket" in ended.stderr and "failed with exit code 4, so the other ranks were stopped" in ended.stderr


def test_two_ways_to_place_ranks_are_refused(small_recipe: Path, call: Call) -> None:
    done = call("train", small_recipe, "--per-socket", "--per-node")
    assert done.code == 2 and "exclude each other. Give one of them." in done.err
