"""The forecast of what a rank holds is what engines hold; what real ranks keep of the optimizer's state:
`tests/pipeline/test_engine_contract.py`."""

from typing import Any

import pytest
import torch
from tests.clock import calls
from tests.reference.batches import NUMBERS, random_batch
from tests.rows import each_row
from torch import nn

from bertwright.model.bert.config import BertModelConfig
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import has_row_per_entry
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.config import AdamWConfig, LambConfig, MuonConfig
from bertwright.train.config import TrainConfig
from bertwright.train.engine.config import DdpConfig, DeepSpeedConfig, EngineConfig, FsdpConfig, ZeroConfig
from bertwright.train.engine.partition import deal_out, part
from bertwright.train.engine.single import Single
from bertwright.train.memory.held_tensors import Sharing, held_bytes, moment_bytes
from bertwright.train.memory.rank_memory import computing_of, training_bytes

BASE = BertModelConfig(size="base").resolve(30522)
LARGE = BertModelConfig(size="large").resolve(30522)


@pytest.mark.parametrize("only_rows", [False, True], ids=["all", "new-rows"])
@pytest.mark.parametrize("optim", [AdamWConfig(), LambConfig(), MuonConfig()], ids=lambda optim: optim.kind)
def test_one_process_holds_what_the_forecast_says(optim: Any, only_rows: bool) -> None:
    config = BertConfig(**NUMBERS)
    model = PreTrainingModel(config)
    engine, held = Single(model, optim), held_bytes(config, Sharing(optim=optim), only_rows=only_rows)
    if only_rows:
        tables = {name: p for name, p in model.named_parameters() if has_row_per_entry(name)}
        engine.train_rows({name: torch.arange(len(p)) for name, p in tables.items()})
    model(random_batch([9, 5], 0))[0].logsumexp(-1).sum().backward()
    engine.reduce()
    engine.update(1e-3)
    assert sum(p.nbytes for p in model.parameters()) == held.weights
    assert sum(p.grad.nbytes for p in model.parameters() if p.grad is not None) == held.gradients
    state = engine.optimizer.state.values()
    assert sum(t.nbytes for kept in state for name, t in kept.items() if name != "step") == held.moments


@each_row("ranks", [2, 3, 4])
def test_a_part_is_the_one_that_torch_cuts(ranks: int) -> None:
    for shape in ((7, 3), (2, 5), (1,), (8,)):
        cut = [chunk.numel() for chunk in torch.zeros(shape).chunk(ranks)]
        assert [part(shape, ranks, rank) for rank in range(ranks)] == cut + [0] * (ranks - len(cut))


def test_shares_of_all_ranks_are_the_whole() -> None:
    whole = 8 * BASE.parameters
    for engine in (ZeroConfig(), FsdpConfig(), DeepSpeedConfig()):
        for ranks in (1, 2, 8):
            sharing = Sharing(engine, AdamWConfig(), ranks)
            assert sum(moment_bytes(BASE, sharing, rank) for rank in range(ranks)) == pytest.approx(whole)
    assert moment_bytes(BASE, Sharing(DdpConfig(), AdamWConfig(), 8), 7) == whole


@each_row("config", [DdpConfig(), ZeroConfig(), FsdpConfig(), DeepSpeedConfig()])
@each_row("ranks", [1, 5, 8])
def test_what_is_held_is_that_of_the_rank_with_the_most(config: EngineConfig, ranks: int) -> None:
    sharing = Sharing(config, AdamWConfig(), ranks)
    assert held_bytes(BASE, sharing).moments == max(moment_bytes(BASE, sharing, rank) for rank in range(ranks))


@pytest.mark.parametrize("config", [DdpConfig(), ZeroConfig(), FsdpConfig()], ids=lambda c: c.kind)
def test_thousands_of_ranks_take_no_longer_than_a_few(config: EngineConfig) -> None:
    """One rank after another would take thousands of calls for each."""
    assert calls(lambda: held_bytes(BASE, Sharing(config, AdamWConfig(), 4096))) < 10 * 4096


def test_a_large_tensor_bounds_what_sharding_saves() -> None:
    sizes = {name: nn.Parameter(torch.empty(shape, device="meta")).numel() for name, shape in BASE.tensors.items()}
    embedding = 8.0 * 30522 * 768
    assert max(sum(8.0 * sizes[n] for n in names) for names in deal_out(sizes, 8)) == embedding
    assert held_bytes(BASE, Sharing(ZeroConfig(), AdamWConfig(), 8)).moments == embedding
    assert held_bytes(BASE, Sharing(FsdpConfig(), AdamWConfig(), 8)).moments < 1.01 * BASE.parameters


def test_what_is_held_in_parts_falls_with_the_ranks() -> None:
    def held(engine: Any, ranks: int = 8, accumulates: bool = False) -> Any:
        return held_bytes(LARGE, Sharing(engine, AdamWConfig(), ranks), accumulates)

    whole = 4.0 * LARGE.parameters
    assert held(DdpConfig()).weights == held(DdpConfig()).gradients == whole
    assert held(DdpConfig()).scratch == whole, "the messages of gradients"
    assert held(DdpConfig(reduction="bf16")).scratch == whole / 2
    assert held(FsdpConfig()).weights < 0.35 * whole and held(FsdpConfig()).gradients < 0.35 * whole
    assert held(FsdpConfig(), accumulates=True).gradients == whole, "of several micro-batches they are added up whole"
    assert held(DeepSpeedConfig(stage=2)).gradients == held(DeepSpeedConfig(stage=1)).gradients / 8
    # Weights of up to 1e9 numbers stay together while a step computes.
    assert held(DeepSpeedConfig(stage=3)) == held(DeepSpeedConfig(stage=2))
    assert held(FsdpConfig()).gathered == 3 * whole and held(ZeroConfig()).gathered == 2 * whole


def test_a_forecast_knows_the_engine() -> None:
    phases = [{"length": 128, "batch": 64, "micro_batch": 8, "learning_rate": 1e-3, "steps": 1}]

    def needed(engine: str, ranks: int) -> float:
        config = TrainConfig.model_validate({"phases": phases, "engine": engine})
        computing = computing_of(config, AdamWConfig(), ranks, gpu=True)
        return training_bytes(LARGE, config.phases[0], computing)

    assert needed("zero", 8) < needed("ddp", 8)
    assert needed("auto", 1) == needed("single", 1) and needed("auto", 8) == needed("ddp", 8)
