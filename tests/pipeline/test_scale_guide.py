"""The commands of docs/how-to/scale.md that train on several ranks train as it says, in its order."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.pipeline.command import ENVIRONMENT, PROGRAM, RECIPES, ROOT
from tests.processes import PATIENCE

from bertwright.core.artifact import open_artifact

pytestmark = pytest.mark.slow
GUIDE = (ROOT / "docs" / "how-to" / "scale.md").read_text(encoding="utf-8")
SHORT = ("train.device=cpu", "train.phases.0.steps=6", "train.phases.1.steps=2", "train.heldout_sequences=16")
LONG = (*SHORT, "train.phases.0.steps=60", "train.checkpoint_every=1")


def commands(out: str) -> list[list[str]]:
    """The guide's commands that work in `out` on its ranks, as they are typed, in its order."""
    found = re.findall(rf"^((?:bertwright run|bertwright train|torchrun) .*--out {out})$", GUIDE, re.MULTILINE)
    words = [shlex.split(line) for line in found]
    return [line for line in words if not {"--per-socket", "train.mirror", "train.spot_notice"} & set(keys(line))]


def keys(words: list[str]) -> list[str]:
    return [word.partition("=")[0] for word in words]


def start(words: list[str], further: tuple[str, ...], folder: Path) -> subprocess.Popen[str]:
    """Start a command with further keys; what it says is in `folder/said`."""
    program = [sys.executable, "-m", "torch.distributed.run"] if words[0] == "torchrun" else PROGRAM
    at = words.index("recipes/smoke.toml") + 1
    command, environment = [*program, *words[1:at], *further, *words[at:]], {**ENVIRONMENT, "PYTHONPATH": f"{ROOT}/src"}
    with (folder / "said").open("w") as said:
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=said, text=True)


def succeed(words: list[str], further: tuple[str, ...], folder: Path) -> str:
    """Run a command with further keys to its end; return what it says."""
    code = start(words, further, folder).wait(PATIENCE)
    said = (folder / "said").read_text()
    assert code == 0, said
    return said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "recipes").symlink_to(RECIPES)
    return tmp_path


@pytest.mark.parametrize(("out", "engine"), [("runs/two", "ddp"), ("runs/zero", "zero"), ("runs/fsdp", "fsdp")])
def test_data_is_prepared_and_two_ranks_train(out: str, engine: str, folder: Path) -> None:
    prepared, trained = commands(out)[:2]
    assert prepared[0] == "bertwright" and trained[0] == "torchrun"
    succeed(prepared, SHORT, folder)
    succeed(trained, SHORT, folder)
    sessions = open_artifact(folder / out / "train", "train").counts["sessions"]
    assert [(each["ranks"], each["engine"]) for each in sessions] == [(2, engine)]


def test_one_process_goes_on_where_four_ranks_were_stopped(folder: Path) -> None:
    prepared, four, one = commands("runs/four")
    succeed(prepared, LONG, folder)
    ranks = start(four, LONG, folder)
    while not list(folder.glob("runs/four/train/checkpoints/step-*")):
        assert ranks.poll() is None, (folder / "said").read_text()
        time.sleep(0.05)
    os.kill(ranks.pid, signal.SIGTERM)
    assert ranks.wait(PATIENCE) != 0, "stopped before the end"
    assert "resuming from step-" in succeed(one, LONG, folder)
    sessions = open_artifact(folder / "runs" / "four" / "train", "train").counts["sessions"]
    assert [(each["ranks"], each["engine"]) for each in sessions] == [(4, "zero"), (1, "single")]
