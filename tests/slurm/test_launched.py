"""`launch slurm` at a real Slurm of two nodes: the chain, pre-emption, a time limit, lost nodes and ranks, a stop.

All that disturbs a training ends with the weights of one that nothing disturbed, to the bit.
"""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.processes import PATIENCE, gone
from tests.slurm.cluster import Cluster, step_servers_of
from tests.slurm.launched import RECIPE, STEPS, Launched, resume

from bertwright.core.files import sha256

pytestmark = pytest.mark.slow
SAVES_WHEN_TOLD = ("train.checkpoint_every=1000",)
UNTOLD = (0, STEPS)
"""The steps from which such a training would go on after being killed: its beginning, and the end of a phase."""


@pytest.fixture(scope="module")
def undisturbed(slurm: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Launched:
    """The whole chain, which nothing disturbed."""
    launched = Launched(slurm, tmp_path_factory.mktemp("undisturbed"))
    jobs = launched.submit()
    launched.ended(jobs["finish"])
    return launched


@pytest.fixture
def prepared(undisturbed: Launched, tmp_path: Path) -> Launched:
    """A run whose training has not begun."""
    launched = Launched(undisturbed.cluster, tmp_path)
    for stage in ("corpus", "vocab", "examples"):
        shutil.copytree(undisturbed.out / stage, launched.out / stage)
    return launched


def files(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of an artifact, but not of the manifest, which has its time."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json")
    return {str(path.relative_to(folder)): sha256(path) for path in found}


def is_told(process: int) -> bool:
    """Whether SIGTERM waits for a process, which is stopped, or has ended it: Slurm may wake it up to be told."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return True
    waiting = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    return any(signals >> (signal.SIGTERM - 1) & 1 for signals in waiting)


def wait_until_told(slurm: Cluster, ranks: Mapping[str, Sequence[int]]) -> None:
    """Wait until Slurm has told all ranks to end, and let them go on."""
    every = list(itertools.chain(*ranks.values()))
    until = time.monotonic() + 150  # before it kills them
    while not all(is_told(rank) for rank in every):
        assert time.monotonic() < until, slurm.said()
        time.sleep(0.2)
    resume(every)


def wait_for_servers(slurm: Cluster, job: str) -> None:
    """Wait until no server of an earlier step of the job runs on any node, and the controller calls none."""
    until = time.monotonic() + PATIENCE  # Slurm kills what does not end after KillWait
    while (left := step_servers_of(job)) or slurm.is_calling():
        assert time.monotonic() < until, f"{left}\n{slurm.said()}"
        time.sleep(0.2)


def test_the_chain_runs_from_the_sources_to_the_report(undisturbed: Launched) -> None:
    states = undisturbed.launch("--status")["jobs"]
    assert [row["job"] for row in states] == ["corpus"] * 2 + ["vocab"] + ["examples"] * 2 + ["train", "finish"]
    assert {row["state"] for row in states} == {"COMPLETED"}
    assert (undisturbed.out / "report.html").is_file() and (undisturbed.out / "export" / "hf").is_dir()
    assert [session["ranks"] for session in undisturbed.sessions()] == [2]
    logs = undisturbed.launch("--logs")["logs"]
    assert len(logs) == 7 and all(name.startswith("run.") for name in logs)


def test_the_elements_of_an_array_share_the_corpus_which_is_that_of_one_process(
    undisturbed: Launched, tmp_path: Path
) -> None:
    logs = [path.read_text() for path in sorted(undisturbed.out.glob("launch/run.corpus-*.log"))]
    assert len(logs) == 2 and all("corpus: reading sample-small" in log for log in logs)
    # The first to end has done its share alone; the last one completes the stage and counts what was kept.
    assert sum("is done; " in log for log in logs) == sum("\nkept " in log for log in logs) == 1
    command = [sys.executable, "-m", "bertwright.cli", "corpus", *RECIPE, "--out", str(tmp_path / "alone")]
    subprocess.run(command, check=True, capture_output=True)
    shared, alone = (files(folder / "corpus") for folder in (undisturbed.out, tmp_path / "alone"))
    assert shared == alone and any(name.startswith("shards/") for name in shared)


def test_a_training_that_is_preempted_goes_on_and_ends_the_same(prepared: Launched, undisturbed: Launched) -> None:
    slurm, train = prepared.cluster, prepared.begin_training(*SAVES_WHEN_TOLD)
    ranks = prepared.hold(train, 40)
    words = ("--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 2")
    urgent = slurm.call("sbatch", "--parsable", *words)
    wait_until_told(slurm, ranks)
    slurm.wait(urgent, "COMPLETED")
    assert int(prepared.ended(train)["Restarts"]) == 1
    assert prepared.weights() == undisturbed.weights() and len(prepared.sessions()) == 2
    assert prepared.sessions()[1]["from_step"] not in UNTOLD


def test_a_training_at_its_time_limit_goes_on_in_a_new_start(prepared: Launched, undisturbed: Launched) -> None:
    slurm, train = (
        prepared.cluster,
        prepared.begin_training(*SAVES_WHEN_TOLD, "--set", 'time="30"', "--set", "warning=300"),
    )
    ranks = prepared.hold(train, 40)
    hours, minutes, _ = slurm.job(train)["RunTime"].split(":")
    slurm.call("scontrol", "update", f"JobId={train}", f"TimeLimit={60 * int(hours) + int(minutes) + 4}")
    wait_until_told(slurm, ranks)
    slurm.call("scontrol", "update", f"JobId={train}", "TimeLimit=30")
    assert int(prepared.ended(train)["Restarts"]) == 1
    assert prepared.weights() == undisturbed.weights() and len(prepared.sessions()) == 2
    assert prepared.sessions()[1]["from_step"] not in UNTOLD


def test_a_lost_node_starts_the_training_again(prepared: Launched, undisturbed: Launched) -> None:
    slurm, train = prepared.cluster, prepared.begin_training()
    ranks = prepared.hold(train, 40)
    slurm.servers["n2"].kill()
    for rank in ranks["n2"]:
        os.kill(rank, signal.SIGKILL)
    slurm.call("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=lost")
    slurm.servers["n2"].wait()
    resume(ranks["n1"])
    # No node is back before the servers of its steps are gone, and the controller has given up to end the job there:
    # either would end the new start.
    slurm.wait(train, "PENDING")
    wait_for_servers(slurm, train)
    slurm.node("n2")  # it is up again once it has registered (ReturnToService=2)
    assert int(prepared.ended(train)["Restarts"]) >= 1
    assert prepared.weights() == undisturbed.weights()


def test_a_lost_rank_starts_the_training_again(prepared: Launched, undisturbed: Launched) -> None:
    train = prepared.begin_training()
    ranks = prepared.hold(train, 40)
    (rank,) = ranks["n2"]
    os.kill(rank, signal.SIGKILL)
    resume(ranks["n1"])
    assert int(prepared.ended(train)["Restarts"]) == 1
    assert prepared.weights() == undisturbed.weights()
    assert "rank 1 of 2" in prepared.logs()


def test_a_rank_that_is_lost_too_often_ends_the_job(prepared: Launched) -> None:
    slurm, train = prepared.cluster, prepared.begin_training("--set", "restarts=0")
    ranks = prepared.hold(train, 1)
    os.kill(ranks["n1"][0], signal.SIGKILL)
    resume(ranks["n2"])
    assert slurm.wait(train, "FAILED")["Restarts"] == "0"


def test_what_is_stopped_has_saved_and_is_not_started_again(prepared: Launched) -> None:
    train = prepared.begin_training()
    ranks = prepared.hold(train, 5)
    assert list(prepared.launch("--stop")["stopped"]) == ["prepare", "train", "finish"]
    wait_until_told(prepared.cluster, ranks)
    job = prepared.cluster.wait(train, "CANCELLED")
    assert all(gone(rank) for rank in itertools.chain(*ranks.values()))
    assert prepared.cluster.job(train)["JobState"] == "CANCELLED" and job["Restarts"] == "0"
    assert list((prepared.out / "train" / "checkpoints").iterdir())


def test_nothing_follows_a_job_that_failed(slurm: Cluster, tmp_path: Path) -> None:
    launched = Launched(slurm, tmp_path)
    jobs = launched.submit("corpus.source=nowhere.txt")
    assert slurm.wait(jobs["finish"], "CANCELLED")
    states = {row["job"]: row["state"] for row in launched.launch("corpus.source=nowhere.txt", "--status")["jobs"]}
    assert states == {"corpus": "FAILED", **dict.fromkeys(("vocab", "examples", "train", "finish"), "CANCELLED")}
    assert "nowhere.txt" in "".join(launched.launch("--logs")["logs"].values())


def test_what_slurm_refuses_is_said_in_its_words_and_nothing_is_left(slurm: Cluster, tmp_path: Path) -> None:
    launched = Launched(slurm, tmp_path)
    error = launched.launch("--submit", "--set", "partition=nowhere", "--set", "prepare.partition=low", code=2)["error"]
    assert "invalid partition specified: nowhere" in error["message"]
    assert not slurm.call("squeue", "--noheader", "--states=pending,running")
    assert not (launched.out / "launch" / "submitted.json").exists()
