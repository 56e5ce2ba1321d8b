"""Sharded checkpoints whose folder is lost come back from a mirror, on other numbers of ranks and engines."""

import shutil
from pathlib import Path

import pytest
from tests.conftest import Prepared
from tests.pipeline.ranks_of import Training, train_on

from bertwright.core.artifact import open_artifact
from bertwright.train.monitor.metrics import read_rows


def losses(folder: Path) -> dict[int, float]:
    return {row["total_steps"]: row["mlm_loss"] for row in read_rows(folder / "metrics.jsonl")}


@pytest.mark.parametrize(("world", "engine"), [(1, "single"), pytest.param(3, "zero", marks=pytest.mark.slow)])
def test_a_lost_folder_goes_on_elsewhere(world: int, engine: str, prepared: Prepared, tmp_path: Path) -> None:
    places = prepared.examples.path, prepared.vocab.path
    given = {"engine": "fsdp", "checkpoint_every": 3, "mirror": f"file://{tmp_path}/mirror", "shard_above_gb": 0}
    train_on(2, [Training("run", given, stop_after=7), Training("whole", {"engine": "fsdp"})], *places, tmp_path / "a")
    newest = max((tmp_path / "mirror" / "checkpoints").iterdir())
    assert len(open_artifact(newest, "checkpoint").names("model-")) == 2
    shutil.rmtree(tmp_path / "a" / "run")

    train_on(world, [Training("run", {**given, "engine": engine})], *places, tmp_path / "a")
    sessions = open_artifact(tmp_path / "a" / "run", "train").counts["sessions"]
    assert [(each["engine"], each["ranks"]) for each in sessions] == [("fsdp", 2), (engine, world)]
    assert len(losses(tmp_path / "a" / "run")) == 20
    assert losses(tmp_path / "a" / "run") == pytest.approx(losses(tmp_path / "a" / "whole"), rel=1e-4)
