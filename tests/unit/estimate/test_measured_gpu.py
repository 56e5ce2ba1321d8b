"""Forecasts for the GPU that was measured give what was measured there."""

from typing import Any

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.estimate.devices import find_gpu
from bertwright.estimate.machine import HardwareConfig, machine_of
from bertwright.estimate.measured_gpu import measured_gpu
from bertwright.estimate.step_time import micro_batch_seconds, update_seconds
from bertwright.estimate.work import PhaseWork
from bertwright.examples.sequences import Sequences
from bertwright.model.bert.config import BertModelConfig
from bertwright.optim.config import LambConfig
from bertwright.plan.plan import make_plan
from bertwright.train.config import TrainConfig

MACHINE = machine_of(HardwareConfig(gpu="h100", gpus=1, cores=16))


@each_row("rate", measured_gpu().rates)
def test_a_forecast_meets_what_was_measured(rate: dict[str, Any]) -> None:
    network = BertModelConfig(size=rate["size"], dropout=0.1).resolve(30_522)
    phase = {key: rate[key] for key in ("length", "batch", "packing")} | {"micro_batch": rate["rows"], "steps": 10}
    keys = {"precision": "bf16", "graph": "compiled", "attention": "varlen"}
    train = TrainConfig.model_validate({**keys, "phases": [{**phase, "learning_rate": 1e-4}]})
    lengths = Sequences((), rate["mean"], rate["deviation"], rate["length"])
    work = PhaseWork(0, train.phases[0], 10, 10 * rate["batch"], lengths)
    passes = work.micro_batches(1)
    each = micro_batch_seconds(network, train, work, MACHINE, rate["batch"] / passes, padded=False)
    seconds = passes * each + update_seconds(network, train, LambConfig(), MACHINE)
    assert rate["batch"] * rate["mean"] / seconds == pytest.approx(rate["tokens"], rel=0.12)


def test_a_tiny_network_waits_for_its_launches() -> None:
    """`demo` took 24 to 28 ms a step at 270,000 to 320,000 tokens a second."""
    (phase,) = make_plan(Recipe.load("demo", given=False), {}, MACHINE)["phases"]
    assert 0.020 < phase["step_seconds"] < 0.035


def test_the_table_names_a_known_gpu() -> None:
    measured = measured_gpu()
    assert find_gpu(measured.gpu).speed("bf16") == pytest.approx(989e12 * measured.products_in_a_step)
    assert measured.products_in_a_step < measured.products
    assert measured.source == "rates from a measurement of this code on one H100 of 2026-11-28, tree 4bdeabc6"
