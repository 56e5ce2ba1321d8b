"""Every optimizer: its state is saved by name, loaded bit for bit, handed over, and rejected if wrong."""

import subprocess
import sys
from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from bertwright.core.errors import CheckpointError
from bertwright.core.section_fields import members
from bertwright.optim.build import build_optimizer, moment_names
from bertwright.optim.config import AdamWConfig, LambConfig, OptimConfig
from bertwright.optim.lamb import Lamb
from bertwright.optim.state import load_named_state, named_state, reset_steps

CONFIGS = [kind() for kind in members(OptimConfig)]


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.layers = nn.ModuleList([nn.Linear(16, 32)])
        self.norm = nn.LayerNorm(32)

    def forward(self, ids: Tensor) -> Tensor:
        return self.norm(torch.tanh(self.layers[0](self.table(ids)))).square()[:, ::3].sum()


def build(config: Any) -> tuple[Small, Optimizer]:
    torch.manual_seed(0)
    model = Small()
    return model, build_optimizer(config, model, {})


def train(model: Small, optimizer: Optimizer, steps: range) -> None:
    for step in steps:
        optimizer.zero_grad()
        ids = torch.randint(0, 50, (20,), generator=torch.Generator().manual_seed(step))
        model(ids).backward()
        for group in optimizer.param_groups:
            group["lr"] = 0.01
        optimizer.step()


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: c.kind)
def test_five_steps_are_three_saved_loaded_and_two(config: Any) -> None:
    model, optimizer = build(config)
    train(model, optimizer, range(5))
    halfway, its_optimizer = build(config)
    train(halfway, its_optimizer, range(3))
    file = save({**named_state(its_optimizer, dict(halfway.named_parameters()))})
    resumed, new_optimizer = build(config)
    resumed.load_state_dict(halfway.state_dict())
    load_named_state(new_optimizer, dict(resumed.named_parameters()), load(file), moment_names(config, model))
    train(resumed, new_optimizer, range(3, 5))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), resumed.parameters(), strict=True))
    expected, got = (
        named_state(optimizer, dict(model.named_parameters())),
        named_state(new_optimizer, dict(resumed.named_parameters())),
    )
    assert expected.keys() == got.keys()
    assert all(torch.equal(expected[name], got[name]) for name in expected)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: c.kind)
def test_names_and_counter(config: Any) -> None:
    model, optimizer = build(config)
    assert list(named_state(optimizer, dict(model.named_parameters()))) == ["step"]
    train(model, optimizer, range(2))
    state = named_state(optimizer, dict(model.named_parameters()))
    moments = {f"{moment}.{name}" for name, kept in moment_names(config, model).items() for moment in kept}
    assert state.keys() == {"step", *moments}
    assert int(state["step"]) == 2 and state["step"].dtype == torch.int64


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: c.kind)
def test_hand_over_keeps_moments_and_resets_the_counter(config: Any) -> None:
    model, optimizer = build(config)
    train(model, optimizer, range(3))
    before = {name: tensor.clone() for name, tensor in named_state(optimizer, dict(model.named_parameters())).items()}
    reset_steps(optimizer)
    after = named_state(optimizer, dict(model.named_parameters()))
    assert int(after["step"]) == 0
    assert all(torch.equal(after[name], before[name]) for name in before if name != "step")
    fresh_model, fresh = build(config)
    fresh_model.load_state_dict(model.state_dict())
    load_named_state(fresh, dict(fresh_model.named_parameters()), after, moment_names(config, model))
    for pair in ((model, optimizer), (fresh_model, fresh)):
        train(*pair, range(3, 4))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), fresh_model.parameters(), strict=True))


def test_state_before_the_first_step_loads_as_a_fresh_start() -> None:
    model, optimizer = build(LambConfig())
    nothing = named_state(optimizer, dict(model.named_parameters()))
    train(model, optimizer, range(1))
    load_named_state(optimizer, dict(model.named_parameters()), nothing, moment_names(LambConfig(), model))
    assert not optimizer.state


def test_the_state_of_another_model_is_refused_by_name() -> None:
    model, optimizer = build(LambConfig())
    train(model, optimizer, range(1))
    state = dict(named_state(optimizer, dict(model.named_parameters())))
    moments = moment_names(LambConfig(), model)
    moment = state.pop("exp_avg.layers.0.weight")
    with pytest.raises(CheckpointError, match=r"exp_avg\.layers\.0\.weight is missing"):
        load_named_state(optimizer, dict(model.named_parameters()), state, moments)
    with pytest.raises(CheckpointError, match=r"exp_avg\.layers\.0\.weight has shape \[32\], not \[32, 16\]"):
        load_named_state(
            optimizer, dict(model.named_parameters()), state | {"exp_avg.layers.0.weight": moment[:, 0]}, moments
        )
    with pytest.raises(CheckpointError, match="stray is unexpected"):
        load_named_state(
            optimizer,
            dict(model.named_parameters()),
            state | {"exp_avg.layers.0.weight": moment, "stray": moment},
            moments,
        )


def test_unequal_counters_are_refused() -> None:
    model, optimizer = build(AdamWConfig())
    train(model, optimizer, range(1))
    optimizer.state[model.layers[0].weight]["step"] += 1
    with pytest.raises(CheckpointError, match=r"different numbers of updates \(\[1, 2\]\)"):
        named_state(optimizer, dict(model.named_parameters()))


def test_build_chooses_by_kind_and_applies_the_settings() -> None:
    model = Small()
    adamw = build_optimizer(AdamWConfig(betas=(0.8, 0.9), eps=1e-7, weight_decay=0.1), model, {})
    assert isinstance(adamw, AdamW) and adamw.defaults["fused"]
    assert [(g["betas"], g["eps"], g["weight_decay"]) for g in adamw.param_groups] == [
        ((0.8, 0.9), 1e-7, 0.1),
        ((0.8, 0.9), 1e-7, 0.0),
    ]
    config = LambConfig(betas=(0.7, 0.9), bias_correction=False, trust_ratio_on_undecayed=True)
    lamb = build_optimizer(config, model, {})
    assert isinstance(lamb, Lamb) and [g["weight_decay"] for g in lamb.param_groups] == [0.01, 0.0]
    assert lamb.config == config


UPDATES = """
import sys
import torch
from bertwright.core.section_fields import members
from torch import nn
from bertwright.optim.build import build_optimizer
from bertwright.optim.config import OptimConfig

for kind in members(OptimConfig):
    model = nn.ModuleDict({"layers": nn.Linear(2, 2)})
    optimizer = build_optimizer(kind(), model, {})
    model["layers"](torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert "torch._dynamo" not in sys.modules, kind
"""


def test_no_update_loads_torchs_compiler() -> None:
    """The compiler costs a second of CPU time and its memory at each start of each rank."""
    done = subprocess.run([sys.executable, "-c", UPDATES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
