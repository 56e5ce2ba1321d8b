"""Every engine, in one process: only the chosen rows move, as if they were all that the optimizer has, and training
goes on from a gathered state, with the rows or with everything. Several ranks: `tests/unit/train`."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tests.contract.test_engines import loss_of, network
from tests.reference.unions import sections_of
from torch import distributed as dist
from torch.nn import Parameter
from torch.nn.utils import clip_grad_norm_

from bertwright.core.errors import RecipeError
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.config import AdamWConfig, LambConfig, OptimConfig
from bertwright.train.engine.config import DeepSpeedConfig, EngineConfig, SingleConfig
from bertwright.train.engine.engine import Engine, build_engine
from bertwright.train.ranks.ranks import Ranks

pytestmark = pytest.mark.filterwarnings("ignore:`torch.distributed.:FutureWarning")
ENGINES = [config for config in sections_of(EngineConfig) if config is not DeepSpeedConfig]
OPTIMIZERS = sections_of(OptimConfig)
TABLE, BIAS = "bert.embeddings.token.weight", "mlm.bias"
INDEX = torch.tensor([3, 5, 6])
ROWS = {TABLE: INDEX, BIAS: INDEX}
RATE, LIMIT = 1e-2, 0.02


@pytest.fixture(autouse=True)
def _no_group_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def move(engine: Engine, model: PreTrainingModel, seed: int) -> float:
    model.zero_grad()
    engine.root(loss_of(model, seed)).backward()
    norm = float(engine.reduce())
    engine.update(RATE)
    return norm


def weights(engine: Engine) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in engine.gather()[0].items()}


@pytest.mark.parametrize("optim", OPTIMIZERS)
@pytest.mark.parametrize("config", ENGINES)
def test_only_the_chosen_rows_move_and_training_goes_on_from_them(config: Any, optim: Any) -> None:
    model = network()
    engine = build_engine(config(), model, optim(weight_decay=0.1), Ranks())
    before = weights(engine)
    engine.train_rows(ROWS)
    for seed in range(3):
        move(engine, model, seed)
    after, moments = weights(engine), {name: tensor.clone() for name, tensor in engine.gather()[1].items()}
    for name, tensor in after.items():
        moved = torch.zeros(len(tensor), dtype=torch.bool)
        if name in ROWS:
            moved[INDEX] = True
        same = (tensor == before[name]).flatten(1).all(1) if tensor.dim() > 1 else tensor == before[name]
        assert torch.equal(same, ~moved), name
    assert int(moments["step"]) == 3 and all(
        not tensor.any() for key, tensor in moments.items() if key != "step" and key.partition(".")[2] not in ROWS
    )
    other_model = network()
    other = build_engine(config(), other_model, optim(weight_decay=0.1), Ranks())
    other.load(moments, after)
    other.train_rows(ROWS)
    for each, its_model in ((engine, model), (other, other_model)):
        move(each, its_model, 3)
        each.train_rows(None)
        each.restart_steps()
        move(each, its_model, 4)
    for one, same in zip(engine.gather(), other.gather(), strict=True):
        assert one.keys() == same.keys() and all(torch.equal(tensor, same[name]) for name, tensor in one.items())
    assert int(engine.gather()[1]["step"]) == 1 and not torch.equal(
        engine.gather()[0]["mlm.transform.weight"], after["mlm.transform.weight"]
    )


@pytest.mark.parametrize("config", ENGINES)
def test_they_move_like_parameters_of_their_own(config: Any) -> None:
    """Against torch's AdamW on a network whose rows are separate parameters, with the norm of their gradients."""
    model, plain = network(), network()
    optim = AdamWConfig(weight_decay=0.1, max_grad_norm=LIMIT)
    engine = build_engine(config(), model, optim, Ranks())
    engine.train_rows(ROWS)
    named = dict(plain.named_parameters())
    own = {name: Parameter(named[name].detach()[INDEX].clone()) for name in ROWS}
    groups = [{"params": [own[TABLE]], "weight_decay": 0.1}, {"params": [own[BIAS]], "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, lr=RATE, betas=optim.betas, eps=optim.eps)
    for seed in range(3):
        norm = move(engine, model, seed)
        plain.zero_grad()
        loss_of(plain, seed).backward()
        for name, part in own.items():
            gradient = named[name].grad
            assert gradient is not None
            part.grad = gradient[INDEX].clone()
        assert norm == pytest.approx(float(clip_grad_norm_(own.values(), LIMIT)), rel=1e-9) and norm > LIMIT
        adam.step()
        with torch.no_grad():
            for name, part in own.items():
                named[name][INDEX] = part
    found = engine.gather()[0]
    for name, part in own.items():
        torch.testing.assert_close(found[name][INDEX], part.detach(), rtol=1e-4, atol=1e-8)


def test_lamb_scales_their_update_by_their_own_norm() -> None:
    model = network()
    engine = build_engine(SingleConfig(), model, LambConfig(weight_decay=0.1, max_grad_norm=0), Ranks())
    engine.train_rows({TABLE: INDEX})
    before = model.encoder.token_weight.detach()[INDEX].clone()
    move(engine, model, 0)
    step = model.encoder.token_weight.detach()[INDEX] - before
    assert float(step.norm()) == pytest.approx(RATE * float(before.norm()), rel=1e-6), "the trust ratio"


def test_nothing_else_gets_a_gradient() -> None:
    model = network()
    engine = build_engine(SingleConfig(), model, AdamWConfig(), Ranks())
    engine.train_rows(ROWS)
    loss_of(model, 0).backward()
    assert {name for name, p in model.named_parameters() if p.grad is not None} == set(ROWS)
    engine.train_rows(None)
    assert all(p.requires_grad for p in model.parameters())


@pytest.mark.deepspeed
def test_deepspeed_cannot() -> None:
    engine = build_engine(DeepSpeedConfig(), network(), AdamWConfig(), Ranks())
    engine.train_rows(None)
    with pytest.raises(RecipeError, match=r"cannot train single rows .* Set train\.engine=zero"):
        engine.train_rows(ROWS)
