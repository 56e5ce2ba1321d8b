"""Every engine of the union, as one process: an update is plain torch's, a norm that is not finite is told, and what is
gathered has every tensor by its name. Several ranks: `tests/golden` and `tests/pipeline/test_ranks.py`."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from tests.reference.batches import NUMBERS, random_batch
from tests.reference.unions import sections_of
from torch import distributed as dist
from torch.nn.utils import clip_grad_norm_

from bertwright.core.errors import CheckpointError, RecipeError
from bertwright.model.bert.config import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.build import build_optimizer, moment_names
from bertwright.optim.config import AdamWConfig, OptimConfig
from bertwright.train.engine.config import DeepSpeedConfig, EngineConfig
from bertwright.train.engine.engine import Engine, build_engine
from bertwright.train.ranks import Ranks

WITHOUT = pytest.mark.skipif(find_spec("deepspeed") is None, reason="DeepSpeed is not installed: pip install deepspeed")
ENGINES = [
    pytest.param(config, marks=WITHOUT) if config is DeepSpeedConfig else config for config in sections_of(EngineConfig)
]
OPTIMIZERS = sections_of(OptimConfig)
LIMIT = 0.05
"""Of the gradient norm: less than it is."""


@pytest.fixture(autouse=True)
def _no_group_is_left() -> Iterator[None]:
    yield
    # DeepSpeed keeps the group that it first met for the whole process.
    if dist.is_initialized() and "deepspeed" not in sys.modules:
        dist.destroy_process_group()


def network() -> PreTrainingModel:
    torch.manual_seed(0)
    return PreTrainingModel(BertConfig(**NUMBERS)).double()


def loss_of(model: PreTrainingModel, seed: int) -> torch.Tensor:
    mlm_PV, _ = model(random_batch([9, 5], seed))
    return mlm_PV.logsumexp(-1).sum()


@pytest.mark.parametrize("config", ENGINES)
def test_an_update_is_that_of_plain_torch(config: Any) -> None:
    model, plain = network(), network()
    optimizer = build_optimizer(AdamWConfig(), plain)
    engine = build_engine(config(), model, AdamWConfig(max_grad_norm=LIMIT), Ranks())
    for group in optimizer.param_groups:
        group["lr"] = 1e-2
    for step in range(3):
        model.zero_grad()
        optimizer.zero_grad()
        for micro_batch in range(2):
            engine.root(loss_of(model, 2 * step + micro_batch), last=micro_batch == 1).backward()
            loss_of(plain, 2 * step + micro_batch).backward()  # type: ignore[no-untyped-call]
        grad_norm = engine.reduce()
        engine.update(1e-2)
        norm = clip_grad_norm_([p for p in plain.parameters() if p.grad is not None], LIMIT)
        for p in plain.parameters():  # what has no gradient decays all the same
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        optimizer.step()
        assert grad_norm.dtype == torch.float64 and float(grad_norm) == pytest.approx(float(norm), rel=1e-6)
    weights, _ = engine.gather()
    for name, tensor in plain.state_dict().items():  # of which DeepSpeed keeps a copy in float32
        torch.testing.assert_close(
            weights[name], tensor, rtol=1e-4, atol=1e-6, check_dtype=config is not DeepSpeedConfig
        )


@pytest.mark.parametrize("config", ENGINES)
@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_a_gradient_that_is_not_finite_is_told_by_its_norm_and_changes_nothing(config: Any, bad: float) -> None:
    model = network()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    engine = build_engine(config(), model, AdamWConfig(max_grad_norm=LIMIT), Ranks())
    engine.root(loss_of(model, 0) * bad).backward()
    assert not engine.reduce().isfinite(), "by which the step drops it: tests/unit/train/test_step.py"
    assert all(torch.equal(tensor, before[name]) for name, tensor in engine.gather()[0].items())


@pytest.mark.parametrize("optim", OPTIMIZERS)
@pytest.mark.parametrize("config", ENGINES)
def test_it_gathers_every_tensor_by_its_name_and_goes_on_from_them(config: Any, optim: Any) -> None:
    model, expected = network(), network()
    if config is DeepSpeedConfig and optim is not AdamWConfig:
        with pytest.raises(RecipeError, match=r"train\.engine = deepspeed cuts .* Set train\.engine=zero"):
            build_engine(config(), model, optim(), Ranks())
        return
    engine = build_engine(config(), model, optim(), Ranks())
    weights, state = engine.gather()
    assert weights.keys() == expected.state_dict().keys() and state.keys() == {"step"}
    moved(engine, model, 0)
    weights, state = copied(engine.gather())
    assert all(
        isinstance(tensor, torch.Tensor) and tensor.shape == expected.state_dict()[name].shape
        for name, tensor in weights.items()
    )
    moments = {f"{moment}.{name}" for name, kept in moment_names(optim(), expected).items() for moment in kept}
    assert state.keys() == {"step", *moments} and int(state["step"]) == 1
    other = build_engine(config(), other_model := network(), optim(), Ranks())
    other.load(state, weights)
    for each, its_model in ((engine, model), (other, other_model)):
        moved(each, its_model, 1)
    for one, same in zip(engine.gather(), other.gather(), strict=True):
        assert one.keys() == same.keys() and all(torch.equal(tensor, same[name]) for name, tensor in one.items())
    engine.restart_steps()
    _, handed_over = engine.gather()
    assert int(handed_over["step"]) == 0 and handed_over.keys() == {"step", *moments}, "a hand-over keeps the moments"


@pytest.mark.parametrize("config", ENGINES)
def test_moments_of_another_network_are_refused(config: Any) -> None:
    engine = build_engine(config(), network(), AdamWConfig(), Ranks())
    with pytest.raises(CheckpointError, match="is missing"):
        engine.load({"step": torch.tensor(3), "exp_avg.other": torch.zeros(2)})


def moved(engine: Engine, model: PreTrainingModel, seed: int) -> None:
    model.zero_grad()
    engine.root(loss_of(model, seed)).backward()
    engine.reduce()
    engine.update(1e-2)


def copied(gathered: tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]) -> Any:
    return tuple({name: tensor.clone() for name, tensor in each.items()} for each in gathered)
