"""The time of an update: Muon's operations beside those that torch counts, and which ranks share them."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from tests.rows import each_row
from torch.utils.flop_counter import FlopCounterMode

from bertwright import Recipe
from bertwright.estimate.devices import Device
from bertwright.estimate.machine import Machine
from bertwright.estimate.step_time import muon_flops, update_seconds
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.modern.config import ModernModelConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.by_name import is_layer_matrix
from bertwright.optim.config import MuonConfig
from bertwright.optim.muon import ITERATIONS
from bertwright.train.engine.single import Single

Load = Callable[..., Recipe]
GPU = Device("gpu", 80e9, {"fp32": 1e9, "half": 4e9}, {"fp32": 1.0, "half": 0.5}, 1e30, 2e9, 100.0)
MUON = "optim.kind=muon"


STARTED = 4e-3
"""Seconds to start an update on a GPU."""


def seconds(recipe: Recipe, device: Device, each: int = 1) -> float:
    machine = Machine("", device, each, 1, 4, 1e9, 0.0)
    return update_seconds(recipe.network(), recipe.train, recipe.optim, machine)


@each_row("kind", ["bert", "modern"])
def test_muons_operations_are_those_that_torch_counts(kind: str) -> None:
    network = BertModelConfig(size="tiny").resolve(50) if kind == "bert" else ModernModelConfig(size="tiny").resolve(50)
    assert ITERATIONS == 5
    engine = Single(PreTrainingModel(network), MuonConfig())
    for p in engine.model.parameters():
        p.grad = torch.ones_like(p)
    with FlopCounterMode(display=False) as counter:
        engine.update(1.0)
    assert muon_flops(network, gpu=False) == counter.get_total_flops()


def test_muon_on_a_gpu_and_on_a_processor(load: Load) -> None:
    recipe = load(MUON)
    flops, tensors = muon_flops(recipe.network(), gpu=False), len(recipe.network().tensors)
    matrices = [sorted(shape) for name, shape in recipe.network().tensors.items() if is_layer_matrix(name, len(shape))]
    each_time = sum(5 * (4 * m * m * n + 2 * m**3) for m, n in matrices)
    assert seconds(recipe, GPU) == pytest.approx(each_time / 2e9 + STARTED) and each_time > flops
    calls = 0.25e-3 * 6 * recipe.network().num_hidden_layers + 20e-6 * tensors + 2e-3
    assert seconds(recipe, replace(GPU, name="cpu")) == pytest.approx(flops / 1e9 + calls)
    assert seconds(load(), GPU) == pytest.approx(STARTED), "AdamW multiplies nothing"


def test_zero_alone_shares_the_matrices(load: Load) -> None:
    whole = seconds(load(MUON), GPU, each=2) - STARTED
    assert seconds(load(MUON, "train.engine=zero"), GPU, each=2) == pytest.approx(whole / 2 + STARTED)
    assert seconds(load(MUON, "train.engine=fsdp"), GPU, each=2) == pytest.approx(whole + STARTED)
