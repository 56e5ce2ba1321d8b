"""With every engine, a run on two ranks that meets killed ranks, signals or damaged checkpoints ends with the same bits
as an undisturbed run."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.command import ENVIRONMENT
from tests.pipeline.engines import DEEPSPEED, overrides
from tests.pipeline.test_lost_ranks import free_port, name_of, said, start_two
from tests.processes import PATIENCE, child_of

from bertwright.core.files import sha256

Copy = Callable[[Path], Path]
SLOW = tuple(pytest.param(name, marks=pytest.mark.slow) for name in ("fsdp", "ddp"))
ENGINES = ("zero", *SLOW, *DEEPSPEED)
STEPS = ("train.phases.0.steps=60", "train.phases.1.steps=20", "train.checkpoint_every=10", "train.evaluate_every=50")
MODEL = Path("train") / "model" / "model.safetensors"


def keys(engine: str) -> tuple[str, ...]:
    return (*STEPS, *overrides(engine))


def lines(folder: Path) -> int:
    metrics = folder / "train" / "metrics.jsonl"
    return metrics.read_bytes().count(b"\n") if metrics.is_file() else 0


def codes(ranks: list[Any]) -> list[int | None]:
    for rank in ranks:
        rank.join(PATIENCE)
    return [rank.exitcode for rank in ranks]


@pytest.mark.parametrize("engine", ENGINES)
def test_killed_stopped_and_damaged_a_run_ends_with_the_same_bits(
    engine: str, small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    undisturbed, folder = small_examples(tmp_path / "undisturbed"), small_examples(tmp_path / "run")
    assert codes(start_two(small_recipe, undisturbed, *keys(engine))) == [0, 0], said(undisturbed, 0)

    def met(number: signal.Signals, victim: int, row: int) -> list[Any]:
        """The ranks; one is sent a signal once the metrics have `row` rows."""
        ranks = start_two(small_recipe, folder, *keys(engine))
        while lines(folder) < row:
            assert all(rank.is_alive() for rank in ranks), said(folder, 0) + said(folder, 1)
            time.sleep(0.005)
        os.kill(ranks[victim].pid, number)
        return ranks

    draw = random.Random(engine)
    victim = draw.randrange(2)
    ranks = met(signal.SIGKILL, victim, draw.randrange(12, 30))
    assert codes(ranks)[1 - victim] == 6, said(folder, 1 - victim)
    error = said(folder, 1 - victim).splitlines()[-1]
    assert error.startswith(f"bertwright: {name_of(victim, ranks[victim])} is lost: its connection ended")
    assert "Traceback" not in said(folder, 1 - victim)

    assert codes(met(signal.SIGTERM, 1, 40)) == [75, 75], said(folder, 0) + said(folder, 1)
    newest = max((folder / "train" / "checkpoints").glob("step-*"))
    content = bytearray((newest / "model.safetensors").read_bytes())
    content[len(content) // 2] ^= 1
    (newest / "model.safetensors").write_bytes(content)

    assert codes(start_two(small_recipe, folder, *keys(engine))) == [0, 0], said(folder, 0) + said(folder, 1)
    assert newest.name in said(folder, 0) and "damaged" in said(folder, 0)
    assert sha256(folder / MODEL) == sha256(undisturbed / MODEL)


def test_one_process_is_asked_for_and_two_are_started(small_recipe: Path, small_examples: Copy, tmp_path: Path) -> None:
    folder = small_examples(tmp_path / "run")
    assert codes(start_two(small_recipe, folder, "train.engine=single")) == [2, 2]
    for rank in range(2):
        expected = (
            "train.engine: single supports only one process, but 2 ranks train; set train.engine=auto, or "
            "start one process"
        )
        assert said(folder, rank).splitlines()[-1].endswith(expected)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["zero", "fsdp"])
def test_torchrun_starts_a_killed_rank_again_with_every_engine(
    engine: str, small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    """Like `test_lost_ranks` for ddp."""
    undisturbed, folder = small_examples(tmp_path / "undisturbed"), small_examples(tmp_path / "run")
    assert codes(start_two(small_recipe, undisturbed, *keys(engine))) == [0, 0], said(undisturbed, 0)
    launch = f"-m torch.distributed.run --nproc-per-node 2 --master-port {free_port()} --max-restarts 1".split()
    command = [*launch, "-m", "bertwright.cli", "train", small_recipe, *keys(engine), "--out", folder]
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONPATH"}
    log = tmp_path / "log"
    with open(log, "w") as handle:
        torchrun = subprocess.Popen([sys.executable, *map(str, command)], env=environment, stdout=handle, stderr=handle)
    while lines(folder) < 25:
        assert torchrun.poll() is None, log.read_text()
        time.sleep(0.01)
    os.kill(child_of(torchrun.pid, "RANK=1"), signal.SIGKILL)
    assert torchrun.wait() == 0, log.read_text()
    told = log.read_text()
    assert "bertwright: rank 1 of 2" in told and "is lost: its connection ended" in told, told
    assert "resuming from step-" in told and "Traceback" not in told, told
    assert sha256(folder / MODEL) == sha256(undisturbed / MODEL)
