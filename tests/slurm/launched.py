"""A run that is launched at the cluster of the tests, by the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.slurm.cluster import Cluster

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
RECIPE = (
    "smoke",
    'corpus.source=["sample-small", {path="sample-small", name="again"}]',  # two pieces, for two elements of an array
    "train.phases.0.steps=120",
    "train.checkpoint_every=20",
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
            timeout=120,
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

    def wait_for_steps(self, steps: int, seconds: float = 120) -> None:
        """Return when training has logged so many steps."""
        metrics, until = self.out / "train" / "metrics.jsonl", time.monotonic() + seconds
        while not metrics.is_file() or self.rows()[-1]["total_steps"] < steps:
            assert time.monotonic() < until, f"no step {steps}\n{self.logs()}"
            time.sleep(0.2)

    def rows(self) -> list[dict[str, Any]]:
        """The metrics, without those that are being written; one that says 0 steps where there is none."""
        text = (self.out / "train" / "metrics.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")] or [
            {"total_steps": 0}
        ]

    def logs(self) -> str:
        """All logs of the jobs."""
        return "\n".join(f"== {path.name}\n{path.read_text()}" for path in sorted(self.out.glob("launch/*.log")))

    def ended(self, number: str, seconds: float = 240) -> dict[str, str]:
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
