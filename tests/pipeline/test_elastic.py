"""torchrun with one to two machines, as docs/how-to/scale.md says: where one of two is lost, the other goes on
alone, and with it again when it is back. Here a machine is an agent of torchrun with one rank."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.pipeline.command import ENVIRONMENT, ROOT
from tests.pipeline.test_lost_ranks import free_port, said, start_two
from tests.pipeline.test_ranks import OVERRIDES, metrics
from tests.processes import PATIENCE, children

from bertwright.core.artifact import open_artifact

pytestmark = pytest.mark.slow
KEYS = (
    *OVERRIDES[:2],
    "train.phases.0.steps=60",
    "train.phases.1.steps=20",
    "train.checkpoint_every=5",
    "train.evaluate_every=40",
)
# Slow enough for a machine to be lost in time, and for one that starts meanwhile, which takes seconds.
PROGRAM = """
import os, time
from bertwright.cli.app import main
from bertwright.train import run as loop
step = loop.train_step
def slow_step(*arguments, **settings):
    time.sleep(0.1 if os.environ["WORLD_SIZE"] == "2" else 2)
    return step(*arguments, **settings)
loop.train_step = slow_step
main()
"""

# As the guide says: the agent that stayed does not tell a new one the address otherwise.
AGAIN = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


@dataclass(frozen=True)
class Agents:
    """Starts agents that train a recipe in a folder; all meet at one port."""

    command: list[str]
    folder: Path
    started: list[subprocess.Popen[str]]

    def start(self) -> subprocess.Popen[str]:
        with self.log(len(self.started)).open("w") as log:
            environment = {**ENVIRONMENT, "PYTHONPATH": f"{ROOT}/src", **AGAIN}
            agent = subprocess.Popen(self.command, env=environment, stdout=log, stderr=log, text=True)
        self.started.append(agent)
        return agent

    def log(self, number: int) -> Path:
        return self.folder.with_suffix(f".{number}")

    def wait_for(self, what: str, happened: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not happened():
            told = "\n".join(self.log(number).read_text() for number in range(len(self.started)))
            assert time.monotonic() < until and self.started[0].poll() is None, f"{what} did not happen:\n{told}"
            time.sleep(0.05)

    def kill_machine(self, agent: subprocess.Popen[str]) -> None:
        for pid in (agent.pid, *children(agent.pid)):
            os.kill(pid, signal.SIGKILL)
        agent.wait()


@contextmanager
def agents(recipe: Path, folder: Path, program: Path) -> Iterator[Agents]:
    program.write_text(PROGRAM)
    port = free_port()
    elastic = f"--nnodes 1:2 --nproc-per-node 1 --max-restarts 3 --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:{port}"
    # A lost agent counts as gone after 15 seconds of silence; a round that could have more agents waits for 20 seconds.
    timed = "--rdzv-id elastic --rdzv-conf join_timeout=120,last_call_timeout=20"
    torchrun = [sys.executable, "-m", "torch.distributed.run", *elastic.split(), *timed.split()]
    started = Agents([*torchrun, str(program), "train", str(recipe), *KEYS, "--out", str(folder)], folder, [])
    try:
        started.start()
        started.wait_for("the first agent listening", lambda: listens(port))
        yield started
    finally:
        for agent in started.started:
            if agent.poll() is None:
                started.kill_machine(agent)


def listens(port: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(port))) == 0


def steps(folder: Path) -> int:
    """The last step of which there is a checkpoint."""
    found = [path.name for path in (folder / "train" / "checkpoints").glob("step-*")]
    return int(max(found, default="step-0").removeprefix("step-"))


def test_a_machine_is_lost_and_comes_back(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    undisturbed, folder = small_examples(tmp_path / "undisturbed"), small_examples(tmp_path / "run")
    for rank in (ranks := start_two(small_recipe, undisturbed, *KEYS)):
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 0], said(undisturbed, 0)

    with agents(small_recipe, folder, tmp_path / "program.py") as machines:
        second = machines.start()
        machines.wait_for("training by two", lambda: steps(folder) >= 10)
        machines.kill_machine(second)
        lost_at = steps(folder)
        machines.wait_for("training by one", lambda: steps(folder) > lost_at)
        third = machines.start()
        assert [each.wait(PATIENCE) for each in (machines.started[0], third)] == [0, 0], machines.log(0).read_text()
    told = machines.log(0).read_text()
    assert "is lost: its connection ended" in told and "resuming from step-" in told and "Traceback" not in told, told
    sessions = open_artifact(folder / "train", "train").counts["sessions"]
    assert [entry["ranks"] for entry in sessions] == [2, 1, 2]
    ours, theirs = metrics(folder), metrics(undisturbed)
    assert [row["batch"] for row in ours] == [row["batch"] for row in theirs] and len(ours) == 80
    for row, other in zip(ours, theirs, strict=True):
        for name in (name for name in other if name.endswith("_loss") or name == "grad_norm"):
            assert row[name] == pytest.approx(other[name], rel=1e-4), (name, row["total_steps"])
