"""Every engine in one process: an update equals plain torch's, a non-finite norm is reported, and a gathered state has
every tensor by name. Several ranks: `tests/golden` and `tests/pipeline/test_ranks.py`."""

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

import pytest
import torch
from tests.reference.batches import NUMBERS, random_batch
from tests.reference.unions import sections_of
from torch import distributed as dist
from torch.nn.utils import clip_grad_norm_

from bertwright.core.errors import CheckpointError, RecipeError
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.build import build_optimizer, moment_names
from bertwright.optim.config import AdamWConfig, OptimConfig
from bertwright.tasks.objective import score
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.train.engine.config import DeepSpeedConfig, EngineConfig, SingleConfig
from bertwright.train.engine.ds_config import Step
from bertwright.train.engine.engine import Engine, build_engine
from bertwright.train.ranks.ranks import Ranks

# DeepSpeed still uses deprecated names of torch's collectives.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.distributed.:FutureWarning")
ENGINES = [
    *(config for config in sections_of(EngineConfig) if config is not DeepSpeedConfig),
    *(
        pytest.param(partial(DeepSpeedConfig, stage=stage), marks=pytest.mark.deepspeed, id=f"DeepSpeed{stage}")
        for stage in (1, 2, 3)
    ),
]
OPTIMIZERS = sections_of(OptimConfig)
LIMIT = 0.05
"""Gradient clipping limit, below the actual norm."""


@pytest.fixture(autouse=True)
def _no_group_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LOCAL_RANK", "0")  # as the engine sets it, and would leave it to later tests
    yield
    if dist.is_initialized():
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
    optimizer = build_optimizer(AdamWConfig(), plain, {})
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
        for p in plain.parameters():  # weight decay applies even without a gradient
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        optimizer.step()
        assert grad_norm.dtype == torch.float64 and float(grad_norm) == pytest.approx(float(norm), rel=1e-6)
    weights, _ = engine.gather()
    for name, tensor in plain.state_dict().items():  # DeepSpeed keeps a float32 copy of these
        torch.testing.assert_close(weights[name], tensor, rtol=1e-4, atol=1e-6, check_dtype=not is_deepspeed(config))


@pytest.mark.parametrize("config", ENGINES)
def test_a_network_that_is_scored_before_its_first_step_trains_the_same(config: Any) -> None:
    model, other = network(), network()
    scored, plain = (build_engine(config(), each, AdamWConfig(), Ranks()) for each in (model, other))
    score(PreTraining(True), model, [random_batch([4, 7], 9)])
    for each, its_model in ((scored, model), (plain, other)):
        each.root(loss_of(its_model, 0)).backward()
        each.reduce()
        each.update(1e-2)
    for one, same in zip(scored.gather(), plain.gather(), strict=True):
        assert one.keys() == same.keys() and all(torch.equal(tensor, same[name]) for name, tensor in one.items())


@pytest.mark.parametrize("config", ENGINES)
def test_the_gradients_of_a_step_that_is_dropped_are_forgotten(config: Any) -> None:
    model, other = network(), network()
    engine, undisturbed = (build_engine(config(), each, AdamWConfig(), Ranks()) for each in (model, other))
    for micro_batch in range(2):
        engine.root(loss_of(model, 7 + micro_batch), last=micro_batch == 1).backward()
    engine.reduce()
    for each, its_model in ((engine, model), (undisturbed, other)):
        its_model.zero_grad()
        for micro_batch in range(2):
            each.root(loss_of(its_model, micro_batch), last=micro_batch == 1).backward()
        each.reduce()
        each.update(1e-2)
    for one, same in zip(engine.gather(), undisturbed.gather(), strict=True):
        assert one.keys() == same.keys() and all(torch.equal(tensor, same[name]) for name, tensor in one.items())


@pytest.mark.parametrize("config", ENGINES)
@pytest.mark.parametrize("scale", [1024.0])
def test_a_scaled_loss_has_the_norm_and_the_update_of_the_loss_itself(config: Any, scale: float) -> None:
    model, other = network(), network()
    scaled, plain = (build_engine(config(), each, AdamWConfig(max_grad_norm=LIMIT), Ranks()) for each in (model, other))
    norms = []
    for each, its_model, factor in ((scaled, model, scale), (plain, other, 1.0)):
        each.root(loss_of(its_model, 0) * factor).backward()
        norms.append(float(each.reduce(factor)))
        each.update(1e-2)
    assert norms[0] == pytest.approx(norms[1], rel=1e-6)
    for one, same in zip(scaled.gather(), plain.gather(), strict=True):
        for name, tensor in one.items():
            torch.testing.assert_close(tensor, same[name], rtol=1e-5, atol=1e-7)


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
    if is_deepspeed(config) and optim is not AdamWConfig:
        with pytest.raises(RecipeError, match=r"train\.engine = deepspeed splits .* Set train\.engine=zero"):
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


@pytest.mark.deepspeed
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_deepspeed_in_float16_moves_float32_weights_and_undoes_our_loss_scale(
    stage: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, plain, config = network().float(), network().float(), DeepSpeedConfig(stage=stage)  # type: ignore[arg-type]
    with pytest.raises(RecipeError, match=r"DeepSpeed has no float16 on this processor\. Set train\.precision=fp32"):
        build_engine(config, network(), AdamWConfig(), Ranks(), Step(fp16=True))
    # DeepSpeed rejects float16 on a CPU, although torch computes it there.
    accelerator = import_module("deepspeed.accelerator").get_accelerator()
    monkeypatch.setattr(accelerator, "is_fp16_supported", lambda: True)
    half = build_engine(config, model, AdamWConfig(max_grad_norm=LIMIT), Ranks(), Step(fp16=True))
    single = build_engine(SingleConfig(), plain, AdamWConfig(max_grad_norm=LIMIT), Ranks())
    assert next(model.parameters()).dtype == torch.float16
    for step in range(3):
        plain.zero_grad()
        for engine, its_model, scale in ((half, model, 256.0), (single, plain, 1.0)):
            for micro_batch in range(2):
                loss = loss_of(its_model, 2 * step + micro_batch)
                engine.root(loss * scale, last=micro_batch == 1).backward()
        norm, expected = half.reduce(256.0), single.reduce()
        assert float(norm) == pytest.approx(float(expected), rel=0.01)
        half.update(1e-3)
        single.update(1e-3)
    (weights, moments), (theirs, _) = half.gather(), single.gather()
    assert {tensor.dtype for tensor in (*weights.values(), *moments.values())} == {torch.float32, torch.int64}
    moved = max(float((weights[name] - tensor).abs().max()) for name, tensor in network().float().state_dict().items())
    wrong = max(float((weights[name] - tensor).abs().mean()) for name, tensor in theirs.items())
    assert moved > 2e-3 and wrong < 2e-4
    copy = build_engine(config, network().float(), AdamWConfig(), Ranks(), Step(fp16=True))
    copy.load(moments, weights)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in copy.gather()[0].items())


def is_deepspeed(config: Any) -> bool:
    return isinstance(config, partial)


def moved(engine: Engine, model: PreTrainingModel, seed: int) -> None:
    model.zero_grad()
    engine.root(loss_of(model, seed)).backward()
    engine.reduce()
    engine.update(1e-2)


def copied(gathered: tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]) -> Any:
    return tuple({name: tensor.clone() for name, tensor in each.items()} for each in gathered)
