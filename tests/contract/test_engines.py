"""Every engine of the union, as one process: an update is plain torch's, a norm that is not finite is told, and what is
gathered has every tensor by its name. Several ranks: `tests/golden` and `tests/pipeline/test_ranks.py`."""

from typing import Any

import pytest
import torch
from tests.reference.batches import NUMBERS, random_batch
from tests.reference.unions import sections_of
from torch.nn.utils import clip_grad_norm_

from bertwright.model.bert.config import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.build import build_optimizer, moment_names
from bertwright.optim.config import AdamWConfig
from bertwright.train.engine.config import EngineConfig
from bertwright.train.engine.engine import build_engine
from bertwright.train.ranks import Ranks

ENGINES = sections_of(EngineConfig)
LIMIT = 0.05
"""Of the gradient norm: less than it is."""


def network() -> PreTrainingModel:
    torch.manual_seed(0)
    return PreTrainingModel(BertConfig(**NUMBERS)).double()


def loss_of(model: PreTrainingModel, seed: int) -> torch.Tensor:
    mlm_PV, _ = model(random_batch([9, 5], seed))
    return mlm_PV.logsumexp(-1).sum()


@pytest.mark.parametrize("config", ENGINES)
def test_an_update_is_that_of_plain_torch(config: Any) -> None:
    model, plain = network(), network()
    optimizer, its_optimizer = build_optimizer(AdamWConfig(), model), build_optimizer(AdamWConfig(), plain)
    engine = build_engine(config(), model, optimizer, LIMIT, Ranks())
    for group in its_optimizer.param_groups:
        group["lr"] = 1e-2
    for step in range(3):
        optimizer.zero_grad()
        its_optimizer.zero_grad()
        for micro_batch in range(2):
            engine.backward(loss_of(model, 2 * step + micro_batch))
            loss_of(plain, 2 * step + micro_batch).backward()  # type: ignore[no-untyped-call]
        grad_norm = engine.reduce()
        engine.update(1e-2)
        norm = clip_grad_norm_([p for p in plain.parameters() if p.grad is not None], LIMIT)
        for p in plain.parameters():  # what has no gradient decays all the same
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        its_optimizer.step()
        assert grad_norm.dtype == torch.float64 and float(grad_norm) == pytest.approx(float(norm), rel=1e-6)
    for one, other in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("config", ENGINES)
@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_a_gradient_that_is_not_finite_is_told_by_its_norm_and_changes_nothing(config: Any, bad: float) -> None:
    model = network()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    engine = build_engine(config(), model, build_optimizer(AdamWConfig(), model), LIMIT, Ranks())
    engine.backward(loss_of(model, 0) * bad)
    assert not engine.reduce().isfinite(), "by which the step drops it: tests/unit/train/test_step.py"
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("config", ENGINES)
def test_it_gathers_every_tensor_by_its_name(config: Any) -> None:
    model, expected = network(), network()
    engine = build_engine(config(), model, build_optimizer(AdamWConfig(), model), LIMIT, Ranks())
    weights, state = engine.gather()
    assert weights.keys() == expected.state_dict().keys() and state.keys() == {"step"}
    engine.backward(loss_of(model, 0))
    engine.reduce()
    engine.update(1e-2)
    weights, state = engine.gather()
    assert all(torch.equal(weights[name], tensor) for name, tensor in model.state_dict().items())
    moments = {f"{moment}.{name}" for name, kept in moment_names(AdamWConfig(), model).items() for moment in kept}
    assert state.keys() == {"step", *moments} and int(state["step"]) == 1
