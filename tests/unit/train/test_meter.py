"""What rows say of computing and memory, and the ledger that grows with them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.conftest import Prepared
from tests.reference.batches import NUMBERS
from tests.unit.train.test_run import Notes

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import Interrupted
from bertwright.examples.config import MaskingConfig, MicroBatching, PlanSet
from bertwright.examples.loader import LoaderSettings
from bertwright.examples.planned import open_loader
from bertwright.model.bert.network import BertConfig
from bertwright.model.config_file import read_config_file
from bertwright.model.flops import forward_flops
from bertwright.model.pretraining import PreTrainingModel
from bertwright.train.monitor.throughput import Throughput, measure_throughput
from bertwright.train.precision.config import Fp32Config
from bertwright.train.precision.precision import Precision
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.state import state_of

Train = Callable[..., Artifact]
PHASES: list[dict[str, Any]] = [
    {"length": 16, "batch": 8, "micro_batch": 3, "learning_rate": 1e-2, "steps": 6},
    {"length": 32, "batch": 4, "learning_rate": 5e-3, "steps": 3},
]
CPU = torch.device("cpu")


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def expected_flops(prepared: Prepared, network: BertConfig) -> list[int]:
    """Of each step, from its batches drawn once more in one piece."""
    flops = []
    for index, phase in enumerate(PHASES):
        settings = LoaderSettings(
            phase["length"], MaskingConfig(), phase["batch"], MicroBatching(phase["batch"]), 42, str(index)
        )
        loader = open_loader(prepared.examples, PlanSet(length=phase["length"]), settings)
        for step in range(phase["steps"]):
            (batch,) = loader.step(step)
            flops.append(3 * forward_flops(network, np.diff(batch.cu_seqlens), batch.counts.predictions))
    return flops


def test_operations_of_all_steps_are_counted(train: Train, prepared: Prepared, tmp_path: Path) -> None:
    done = train("whole", phases=PHASES)
    network = BertConfig(**{**read_config_file(tmp_path / "bert.json"), **done.counts["network"]})
    steps = expected_flops(prepared, network)
    assert done.counts["tflops_done"] == pytest.approx(sum(steps) / 1e12, abs=1e-6)
    for path in sorted((done.path / "checkpoints").iterdir()):
        state = state_of(open_artifact(path, "checkpoint"))
        assert state.flops == sum(steps[: state.total_steps])
    with pytest.raises(Interrupted):
        train("stopped", phases=PHASES, log=Notes(kill_at_row=1))
    again = train("stopped", phases=PHASES)
    newest = max((again.path / "checkpoints").iterdir())
    assert state_of(open_artifact(newest, "checkpoint")).flops == sum(steps)
    assert again.counts["hours"] == pytest.approx(again.manifest["seconds"] / 3600, abs=1e-6)


def test_a_row_has_accuracy_speed_and_remaining_time(train: Train) -> None:
    for row in rows_of(train(phases=PHASES).path):
        assert 0 <= row["mlm_accuracy"] <= 1 and 0 <= row["nsp_accuracy"] <= 1
        assert row["tflops_per_second"] > 0 and row["floor_ratio"] > 1, "a tiny step is never all products"
        assert 10e6 < row["memory_bytes"] < 100e9
        assert row["remaining_low_seconds"] <= row["remaining_seconds"] <= row["remaining_high_seconds"]


def test_speed_and_floor_by_hand() -> None:
    meter = Throughput(BertConfig(**NUMBERS), CPU, floor=4e9)
    row = meter.row(flops=6e9, seconds=3.0)
    assert row["tflops_per_second"] == pytest.approx(0.002)
    assert row["floor_ratio"] == pytest.approx(2.0), "the products alone would take 1.5 seconds"
    assert np.isnan(meter.row(0.0, 1.0)["floor_ratio"])


def test_measuring_the_floor_has_no_side_effects() -> None:
    torch.manual_seed(3)
    model = PreTrainingModel(BertConfig(**NUMBERS))
    before, drawn = torch.get_rng_state(), {name: t.clone() for name, t in model.state_dict().items()}
    settings = LoaderSettings(32, MaskingConfig(), 8, MicroBatching(8), 1, "0")
    meter = measure_throughput(model, Precision(Fp32Config(), CPU), settings, Ranks())
    assert 1e6 < meter.floor < 1e13
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(t, drawn[name]) for name, t in model.state_dict().items())
