"""DeepSpeed's own ZeRO: its stages train like one process, and runs continue with other engines.

What it shares with torch's engines is tested with them: `tests/contract/test_engines.py`, `test_engine_contract.py`,
`test_engine_losses.py`, `test_lost_ranks.py`, `test_sharded_checkpoints.py`.
"""

import json
from pathlib import Path

import pytest
from tests.conftest import Prepared
from tests.pipeline.engines import STAGES, section
from tests.pipeline.ranks_of import PHASES, Training, train_on
from tests.pipeline.test_engines import assert_same

from bertwright.core.artifact import open_artifact
from bertwright.core.files import sha256

pytestmark = [pytest.mark.slow, pytest.mark.deepspeed]
LONG = [{**phase, "steps": steps} for phase, steps in zip(PHASES, (30, 20), strict=True)]
MODEL = Path("model") / "model.safetensors"


@pytest.fixture(scope="module")
def alone(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trainings of 20 and of 50 steps in one process."""
    folder = tmp_path_factory.mktemp("alone")
    both = [Training("single", {"engine": "single"}), Training("long", {"engine": "single", "phases": LONG})]
    train_on(1, both, prepared.examples.path, prepared.vocab.path, folder)
    return folder


@pytest.mark.parametrize(("engine", "world"), [*((stage, 2) for stage in STAGES), *((s, 3) for s in STAGES[1:])])
def test_every_stage_trains_as_one_process(
    engine: str, world: int, prepared: Prepared, tmp_path: Path, alone: Path
) -> None:
    """Several micro-batches per step, across a phase change, with gradients that are clipped."""
    places = prepared.examples.path, prepared.vocab.path
    train_on(world, [Training("stage", {"engine": section(engine)})], *places, tmp_path / "r")
    assert_same(tmp_path / "r" / "stage", alone / "single", rel=1e-5)
    told = json.loads((tmp_path / "r" / "stage" / "ds_config.json").read_text())
    assert told["zero_optimization"] == {"stage": int(engine[-1])} and told["train_batch_size"] % world == 0
    assert "ds_config.json" in open_artifact(tmp_path / "r" / "stage", "train").names("ds_config")


@pytest.mark.parametrize("engine", STAGES)
def test_a_run_that_was_stopped_ends_with_the_same_bits(engine: str, prepared: Prepared, tmp_path: Path) -> None:
    """Stopped in the first phase, at the hand-over, and in the second phase."""
    places = prepared.examples.path, prepared.vocab.path
    for name, stops in (("undisturbed", (0,)), ("stopped", (5, 7, 2, 0))):
        for after in stops:
            train_on(2, [Training(name, {"engine": section(engine)}, stop_after=after)], *places, tmp_path / "r")
    assert sha256(tmp_path / "r" / "stopped" / MODEL) == sha256(tmp_path / "r" / "undisturbed" / MODEL)


def test_one_process_trains_twice(prepared: Prepared, tmp_path: Path) -> None:
    """DeepSpeed keeps its groups for as long as the process lives; those of the first training are closed."""
    both = [Training(name, {"engine": section("deepspeed-2")}) for name in ("first", "second")]
    train_on(1, both, prepared.examples.path, prepared.vocab.path, tmp_path / "r")
    assert sha256(tmp_path / "r" / "first" / MODEL) == sha256(tmp_path / "r" / "second" / MODEL)


ROAD = [
    (2, "deepspeed-3", 11),
    (3, "fsdp", 10),
    (2, "ddp", 12),  # across the phase change
    (3, "deepspeed-3", 6),
    (2, "deepspeed-1", 5),
    (1, "single", 0),
]
"""Ranks, engine, and steps until it is stopped."""


@pytest.mark.parametrize("shard_above_gb", [0, 5], ids=["sharded", "whole"])
def test_a_run_goes_on_with_any_other_engine(
    shard_above_gb: int, prepared: Prepared, tmp_path: Path, alone: Path
) -> None:
    """From the checkpoint files of all ranks and from those of rank 0; over 50 steps."""
    places = prepared.examples.path, prepared.vocab.path
    for world, engine, steps in ROAD:
        asked = {"engine": section(engine), "shard_above_gb": shard_above_gb, "phases": LONG}
        train_on(world, [Training("travelled", asked, stop_after=steps)], *places, tmp_path / "t")
        if steps:
            newest = max((tmp_path / "t" / "travelled" / "checkpoints").glob("step-*"))
            parts = world if shard_above_gb == 0 else 1
            assert len(list(newest.glob("model*.safetensors"))) == parts
    assert_same(tmp_path / "t" / "travelled", alone / "long", rel=1e-4, steps=50)
    sessions = open_artifact(tmp_path / "t" / "travelled", "train").counts["sessions"]
    assert [entry["engine"] for entry in sessions] == [engine.partition("-")[0] for _, engine, _ in ROAD]
