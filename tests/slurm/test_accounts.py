"""`launch slurm --status` of jobs that have left the queue, at a real Slurm that keeps accounts in a real database."""

import time
from pathlib import Path

import pytest
from tests.slurm.cluster import Cluster
from tests.slurm.launched import Launched

pytestmark = pytest.mark.slow


def forgotten(slurm: Cluster, jobs: dict[str, str], seconds: float = 900) -> None:
    """Return when the queue has none of the jobs any more."""
    until = time.monotonic() + seconds
    while slurm.call("squeue", "--noheader", "--states=all"):
        assert time.monotonic() < until, f"{jobs}\n{slurm.said()}"
        time.sleep(1)


def test_what_has_left_the_queue_is_known_by_the_accounts(slurm_with_accounts: Cluster, tmp_path: Path) -> None:
    launched = Launched(slurm_with_accounts, tmp_path)
    jobs = launched.submit("train.phases.0.steps=2")
    forgotten(slurm_with_accounts, jobs)
    rows = launched.launch("--status")["jobs"]
    arrays = [f"{jobs['corpus']}_0", f"{jobs['corpus']}_1", jobs["vocab"]]
    arrays += [f"{jobs['examples']}_0", f"{jobs['examples']}_1", jobs["train"], jobs["finish"]]
    assert sorted(row["id"] for row in rows) == sorted(arrays)
    assert {row["state"] for row in rows} == {"COMPLETED"} and {row["why"] for row in rows} == {"exit code 0:0"}


def test_what_failed_and_what_was_cancelled_is_known_by_the_accounts(
    slurm_with_accounts: Cluster, tmp_path: Path
) -> None:
    launched = Launched(slurm_with_accounts, tmp_path)
    jobs = launched.submit("corpus.source=nowhere.txt", "--set", "prepare.tasks=1")
    forgotten(slurm_with_accounts, jobs)
    rows = {row["job"]: row for row in launched.launch("corpus.source=nowhere.txt", "--status")["jobs"]}
    assert {name: row["state"] for name, row in rows.items()} == {
        "prepare": "FAILED",
        "train": "CANCELLED",
        "finish": "CANCELLED",
    }
    assert rows["prepare"]["why"] == "exit code 3:0", "that of data that is wrong"


def test_a_run_that_goes_on_is_not_submitted_again_until_it_is_stopped(
    slurm_with_accounts: Cluster, tmp_path: Path
) -> None:
    launched = Launched(slurm_with_accounts, tmp_path)
    jobs = launched.submit("--set", "prepare.tasks=1")
    error = launched.launch("--submit", "--set", "prepare.tasks=1", code=2)["error"]
    assert "run is already submitted, and prepare, train, finish wait or run. Stop them (--stop)" in error["message"]
    slurm_with_accounts.wait(jobs["prepare"], "RUNNING")
    launched.launch("--stop")
    forgotten(slurm_with_accounts, jobs)
    rows = launched.launch("--status")["jobs"]
    assert [(row["id"], row["state"]) for row in rows] == [(number, "CANCELLED") for number in jobs.values()]
    assert {row["why"] for row in rows} <= {"exit code 0:0, by user 0", "exit code 0:15, by user 0"}
    again = launched.submit("--set", "prepare.tasks=1")
    assert not set(again.values()) & set(jobs.values())
    launched.launch("--stop")
