"""DeepSpeed's own ZeRO: its stages train like one process, and runs continue with other engines."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.conftest import Prepared
from tests.pipeline.ranks_of import Training, train_on
from tests.pipeline.test_engines import assert_same

from bertwright.core.artifact import open_artifact
from bertwright.core.files import sha256

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("deepspeed") is None, reason="DeepSpeed is not installed: pip install deepspeed"),
]
ADAMW = {"kind": "adamw"}
STAGES = (1, 2, 3)
MODEL = Path("model") / "model.safetensors"


def deepspeed(stage: int) -> dict[str, object]:
    return {"kind": "deepspeed", "stage": stage}


@pytest.fixture(scope="module")
def alone(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The training in one process."""
    folder = tmp_path_factory.mktemp("alone")
    train_on(1, [Training("single", {"engine": "single"}, ADAMW)], prepared.examples.path, prepared.vocab.path, folder)
    return folder / "single"


@pytest.mark.parametrize(("stage", "world"), [(1, 2), (2, 2), (3, 2), (2, 3), (3, 3)])
def test_every_stage_trains_as_one_process(
    stage: int, world: int, prepared: Prepared, tmp_path: Path, alone: Path
) -> None:
    """Several micro-batches per step, across a phase change, with gradients that are clipped."""
    places = prepared.examples.path, prepared.vocab.path
    train_on(world, [Training("stage", {"engine": deepspeed(stage)}, ADAMW)], *places, tmp_path / "r")
    assert_same(tmp_path / "r" / "stage", alone, rel=1e-5)
    told = json.loads((tmp_path / "r" / "stage" / "ds_config.json").read_text())
    assert told["zero_optimization"] == {"stage": stage} and told["train_batch_size"] % world == 0
    assert "ds_config.json" in open_artifact(tmp_path / "r" / "stage", "train").names("ds_config")


@pytest.mark.parametrize("stage", STAGES)
def test_a_run_that_was_stopped_ends_with_the_same_bits(stage: int, prepared: Prepared, tmp_path: Path) -> None:
    places = prepared.examples.path, prepared.vocab.path
    engine = {"engine": deepspeed(stage)}
    for name, stops in (("undisturbed", (0,)), ("stopped", (5, 9, 0))):
        for after in stops:  # in the first phase, and in the second
            train_on(2, [Training(name, engine, ADAMW, after)], *places, tmp_path / "r")
    assert sha256(tmp_path / "r" / "stopped" / MODEL) == sha256(tmp_path / "r" / "undisturbed" / MODEL)


@pytest.mark.parametrize("shard_above_gb", [0, 5], ids=["sharded", "whole"])
def test_a_run_goes_on_with_any_other_engine(
    shard_above_gb: int, prepared: Prepared, tmp_path: Path, alone: Path
) -> None:
    """From the checkpoint files of all ranks and from those of rank 0."""
    places = prepared.examples.path, prepared.vocab.path
    road = [(2, deepspeed(3), 4), (3, "fsdp", 3), (2, "ddp", 2), (3, deepspeed(3), 2), (2, deepspeed(1), 1)]
    for world, engine, steps in [*road, (1, "single", 0)]:
        asked = {"engine": engine, "shard_above_gb": shard_above_gb}
        train_on(world, [Training("travelled", asked, ADAMW, steps)], *places, tmp_path / "t")
        if steps:
            newest = max((tmp_path / "t" / "travelled" / "checkpoints").glob("step-*"))
            parts = world if shard_above_gb == 0 else 1
            assert len(list(newest.glob("model*.safetensors"))) == parts
    assert_same(tmp_path / "t" / "travelled", alone, rel=1e-4)
    sessions = open_artifact(tmp_path / "t" / "travelled", "train").counts["sessions"]
    assert [entry["engine"] for entry in sessions] == ["deepspeed", "fsdp", "ddp", "deepspeed", "deepspeed", "single"]
