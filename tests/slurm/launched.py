"""A run that is launched at the cluster of the tests, by the command line."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.processes import PATIENCE
from tests.slurm.cluster import NODES, Cluster, processes_of

from bertwright.core.files import sha256

PLACE = """\
kind = "slurm"
nodes = 2
cpus = 1
time = "10"
warning = 10
setup = ["export PATH={programs}:$PATH"]
environment = {{GLOO_SOCKET_IFNAME = "lo", OMP_NUM_THREADS = "1"}}

[prepare]
tasks = 2
cpus = 1
memory = "1G"
time = "10"

[finish]
cpus = 1
memory = "2G"
time = "10"
"""
STEPS = 600
"""Steps of the first phase: more than a test takes to see the first ones and to stop it there."""
RECIPE = (
    "smoke",
    'corpus.source=["sample-small", {path="sample-small", name="again"}]',  # two pieces, for two elements of an array
    f"train.phases.0.steps={STEPS}",
    "train.checkpoint_every=100",
    "train.evaluate_every=1000",
    "train.log_every=5",
    "train.device=cpu",
    "train.timeout=60",
)


@dataclass
class Launched:
    """The run folder `run` in a folder that all nodes see."""

    cluster: Cluster
    folder: Path

    def __post_init__(self) -> None:
        programs = Path(sys.executable).parent
        (self.folder / "place.toml").write_text(PLACE.format(programs=programs), encoding="utf-8")

    @property
    def out(self) -> Path:
        """The run folder."""
        return self.folder / "run"

    def launch(self, *words: str, code: int = 0) -> Any:
        """What `bertwright launch slurm` says, as JSON."""
        command = [sys.executable, "-m", "bertwright.cli", "launch", "slurm", *RECIPE, "--place", "place.toml"]
        done = subprocess.run(
            [*command, "--out", "run", "--json", *words],
            cwd=self.folder,
            env=self.cluster.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def submit(self, *words: str) -> dict[str, str]:
        """Submit; the ids of the jobs by their names."""
        jobs: dict[str, str] = self.launch("--submit", *words)["jobs"]
        return jobs

    def begin_training(self, *words: str) -> str:
        """Submit for training alone; the id of its job."""
        jobs = self.submit("--set", "prepare.tasks=1", *words)
        self.cluster.call("scancel", jobs["finish"])
        return jobs["train"]

    def hold(self, job: str, steps: int) -> dict[str, list[int]]:
        """Stop all ranks (SIGSTOP) once training has logged so many steps; returns them by node.

        What a test does next thus happens in the middle of training, however long Slurm takes for it.
        """
        metrics, until = self.out / "train" / "metrics.jsonl", time.monotonic() + PATIENCE
        while not metrics.is_file() or self.rows()[-1]["total_steps"] < steps:
            assert time.monotonic() < until, f"no step {steps}\n{self.logs()}"
            time.sleep(0.05)
        ranks = {node: ranks_on(job, node) for node in NODES}
        for rank in itertools.chain(*ranks.values()):
            os.kill(rank, signal.SIGSTOP)
        assert all(ranks.values()) and self.rows()[-1]["total_steps"] < STEPS, f"{ranks}\n{self.logs()}"
        return ranks

    def rows(self) -> list[dict[str, Any]]:
        """The metrics, without those that are being written; one that says 0 steps where there is none."""
        text = (self.out / "train" / "metrics.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")] or [
            {"total_steps": 0}
        ]

    def logs(self) -> str:
        """All logs of the jobs."""
        return "\n".join(f"== {path.name}\n{path.read_text()}" for path in sorted(self.out.glob("launch/*.log")))

    def ended(self, number: str, seconds: float = 900) -> dict[str, str]:
        """The job, which has to end well."""
        job = self.cluster.wait(number, "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", seconds=seconds)
        assert job["JobState"] == "COMPLETED", f"{job}\n{self.logs()}"
        return job

    def weights(self) -> str:
        """The SHA-256 of the trained weights."""
        return sha256(self.out / "train" / "model" / "model.safetensors")

    def sessions(self) -> list[dict[str, Any]]:
        """The starts that the training had."""
        manifest = json.loads((self.out / "train" / "manifest.json").read_text(encoding="utf-8"))
        sessions: list[dict[str, Any]] = manifest["counts"].get("sessions") or manifest["sessions"]
        return sessions


def ranks_on(job: str, node: str) -> list[int]:
    """The ranks of a training on a node."""
    found = []
    for process, words in processes_of(job).items():
        with suppress(FileNotFoundError, ProcessLookupError):
            command = Path(f"/proc/{process}/cmdline").read_bytes()
            if {f"SLURMD_NODENAME={node}".encode(), b"WORLD_SIZE=2"} <= set(words) and b"\0train\0" in command:
                found.append(process)
    return found


def resume(ranks: Iterable[int]) -> None:
    """Let stopped ranks go on, those that are still there."""
    for rank in ranks:
        with suppress(ProcessLookupError):
            os.kill(rank, signal.SIGCONT)
