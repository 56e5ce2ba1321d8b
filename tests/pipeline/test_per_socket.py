"""`train --per-socket` as a command: two ranks on what it detects as two sockets, compared with one process."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pipeline.command import ENVIRONMENT, ROOT
from tests.pipeline.conftest import Call
from tests.pipeline.test_ranks import OVERRIDES, assert_same_training, metrics
from tests.processes import PATIENCE, child_of, gone, signal_again

CPUS = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
pytestmark = pytest.mark.skipif(len(CPUS) < 2, reason="two processors are needed, which only Linux tells")
PROGRAM = """
import os, sys
from pathlib import Path
from bertwright.cli.app import main
from bertwright.core import resources
resources.SYSTEM = Path({system!r})
os.sched_setaffinity(0, {cpus!r})
sys.argv = ["bertwright", *{arguments!r}]
main()
"""


def start_per_socket(system: Path, *arguments: object) -> subprocess.Popen[str]:
    """Start the command on a simulated machine with two sockets of one processor each."""
    for number, cpu in enumerate(CPUS[:2]):
        topology = system / "cpu" / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True, exist_ok=True)
        (topology / "physical_package_id").write_text(f"{number}\n")
        (topology / "core_cpus_list").write_text(f"{cpu}\n")
    program = PROGRAM.format(system=str(system), cpus=CPUS[:2], arguments=[*map(str, arguments)])
    command = [sys.executable, "-c", program]
    # Ranks communicate over loopback, which the environment of the other tests refuses.
    environment = {**ENVIRONMENT, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def per_socket(system: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command to completion."""
    process = start_per_socket(system, *arguments)
    out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


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


def test_after_a_second_signal_stopped_ranks_are_killed_and_named(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder = small_examples(tmp_path / "run")
    keys = ("train.device=cpu", "train.phases.0.steps=4000", "train.checkpoint_every=1000", "train.evaluate_every=1000")
    process = start_per_socket(tmp_path / "system", "train", small_recipe, *keys, "--per-socket", "--out", folder)
    while not (folder / "train" / "metrics.jsonl").is_file():
        assert process.poll() is None
        time.sleep(0.1)
    ranks = [child_of(process.pid, f"RANK={rank}") for rank in range(2)]
    for rank in ranks:
        os.kill(rank, signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    signal_again(process, signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 75
    named = ", ".join(f"rank {rank} of 2 (process {ranks[rank]} on socket {rank})" for rank in range(2))
    assert f"ended by a second signal, SIGTERM; killed what did not end: {named}." in err
    assert all(map(gone, ranks))


def test_two_ways_to_place_ranks_are_refused(small_recipe: Path, call: Call) -> None:
    done = call("train", small_recipe, "--per-socket", "--per-node")
    assert done.code == 2 and "exclude each other. Give one of them." in done.err
