from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from tests.reference.lamb import ReferenceLamb
from tests.rows import each_row
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from bertwright.optim import lamb, norms
from bertwright.optim.adam import AdamRule
from bertwright.optim.config import LambConfig
from bertwright.optim.lamb import Lamb
from bertwright.optim.norms import clip_global_norm
from bertwright.optim.shards import Whole

SHAPES = {
    "matrix": (37, 24),
    "table": (300, 24),
    "zero weight": (6, 4),
    "zero gradient": (5, 7),
    "bias": (24,),
    "norm": (24,),
}
UNDECAYED = ("bias", "norm")


class Adding(Whole):
    """Whole tensors, whose norms come from elsewhere."""

    def __init__(self, add: Callable[[Tensor], Tensor]) -> None:
        self._add = add

    def add(self, numbers: Tensor) -> Tensor:
        return self._add(numbers)


@pytest.fixture(params=["by rows", "at once"])
def _norms(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to take norms, that of CPUs and that of GPUs, which a CPU can do as well."""
    if request.param == "at once":
        monkeypatch.setattr(norms, "_by_rows", norms._at_once)


def start() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    weights = {name: random.normal(scale=0.1, size=shape).astype(np.float32) for name, shape in SHAPES.items()}
    weights["zero weight"][:] = 0
    return weights


def gradients(step: int) -> dict[str, np.ndarray]:
    """Lengths from far below the clipping limit to far above it."""
    random = np.random.default_rng(100 + step)
    scale = 10.0 ** (step % 5 - 3)
    made = {name: (random.normal(size=shape) * scale).astype(np.float32) for name, shape in SHAPES.items()}
    made["zero gradient"][:] = 0
    return made


def ours(
    weights: dict[str, np.ndarray],
    add: Callable[[Tensor], Tensor] = lambda squares: squares,
    device: str = "cpu",
    **options: Any,
) -> tuple[dict[str, torch.nn.Parameter], Lamb]:
    named = {name: torch.nn.Parameter(torch.tensor(w, device=device)) for name, w in weights.items()}
    decaying = [p for name, p in named.items() if name not in UNDECAYED]
    groups = [
        {"params": decaying, "weight_decay": 0.01},
        {"params": [named[name] for name in UNDECAYED], "weight_decay": 0.0},
    ]
    return named, Lamb(groups, LambConfig(**options), Adding(add))


def run(named: dict[str, torch.nn.Parameter], optimizer: Lamb, steps: range, max_norm: float = 1.0) -> None:
    for step in steps:
        for name, gradient in gradients(step).items():
            named[name].grad = torch.tensor(gradient, device=named[name].device)
        clip_global_norm([p.grad for p in named.values() if p.grad is not None], max_norm)
        for group in optimizer.param_groups:
            group["lr"] = 6e-3 / (step + 1)
        optimizer.step()


RULES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nvidia": ({}, {}),
    "nvlamb": ({"trust_ratio_on_undecayed": True}, {"nvlamb": True}),
    "uncorrected": ({"bias_correction": False}, {"bias_correction": False}),
    "other betas": ({"betas": (0.8, 0.99), "eps": 1e-4}, {"betas": (0.8, 0.99), "eps": 1e-4}),
    "clipped ratio": ({"max_trust_ratio": 0.05}, {"max_trust_ratio": 0.05}),
    "whole gradient": ({"grad_averaging": False}, {"grad_averaging": False}),
}
"""Options, and what the plain rule calls them."""


@each_row(("options", "reference"), RULES.values())
@each_row("max_norm", [1.0, 0.0])
@pytest.mark.usefixtures("_norms")
def test_twenty_updates_agree_with_the_plain_rule(
    options: dict[str, Any], reference: dict[str, Any], max_norm: float
) -> None:
    check_twenty_updates(options, reference, max_norm, "cpu")


def check_twenty_updates(
    options: dict[str, Any], reference: dict[str, Any], max_norm: float, device: str, rounded: bool = False
) -> None:
    """On a GPU: `tests/gpu/test_optimizers.py`. If the kernel has `rounded` the decay rates, so has the plain rule."""
    if rounded:
        betas = reference.get("betas", (0.9, 0.999))
        reference = {**reference, "betas": tuple(float(np.float32(beta)) for beta in betas)}
    weights = start()
    named, optimizer = ours(weights, device=device, **options)
    run(named, optimizer, range(20), max_norm)
    decay = {name: 0.0 if name in UNDECAYED else 0.01 for name in SHAPES}
    doubles = {name: w.astype(np.float64) for name, w in weights.items()}
    plain = ReferenceLamb(doubles, decay, max_grad_norm=max_norm, **reference)
    for step in range(20):
        plain.update(gradients(step), 6e-3 / (step + 1))
    for name, expected in plain.weights.items():
        got = named[name].detach().double().cpu().numpy()
        assert np.linalg.norm(got - expected) <= 1e-6 * np.linalg.norm(expected), name
        assert np.linalg.norm(expected - weights[name]) > 1e-3 * np.linalg.norm(expected) or name == "zero gradient", (
            name
        )


def adam_in_float32(
    gradients: Sequence[Tensor],
    parameters: Sequence[Tensor],
    states: Sequence[Mapping[str, Tensor]],
    steps: Sequence[Tensor],
    rule: AdamRule,
) -> None:
    """`adam_by` as torch's kernel for GPUs computes it since pytorch#154069: all scalars are float32 too."""
    beta1, beta2, one = np.float32(rule.betas[0]), np.float32(rule.betas[1]), np.float32(1)
    for parameter, gradient, state, step in zip(parameters, gradients, states, steps, strict=True):
        p, g, m, v = (each.detach().numpy() for each in (parameter, gradient, state["exp_avg"], state["exp_avg_sq"]))
        m[...] = beta1 * m + (one - beta1) * g
        v[...] = beta2 * v + (one - beta2) * g * g
        count = np.float32(step)
        root = np.sqrt(v) / np.sqrt(one - beta2**count) + np.float32(rule.eps)
        p -= np.float32(rule.learning_rate) / (one - beta1**count) * m / root


@each_row(("options", "reference"), RULES.values())
def test_a_kernel_in_float32_follows_the_rule_of_rounded_betas(
    options: dict[str, Any], reference: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.999 in float32 is 1.3e-8 more, so 1 - beta2 is 1.3e-5 less, and the root of the second moment 6.4e-6. Bias
    correction divides by the same number; without it the first updates are too long by so much."""
    monkeypatch.setattr(lamb, "adam_by", adam_in_float32)
    check_twenty_updates(options, reference, 1.0, "cpu", rounded=True)
    if not options.get("bias_correction", True):
        with pytest.raises(AssertionError, match="zero weight"):
            check_twenty_updates(options, reference, 1.0, "cpu")


def test_zero_gradients_leave_only_decay_and_zero_weights_leave_zero() -> None:
    named, optimizer = ours(
        {"matrix": np.zeros((2, 2), np.float32), **{name: np.ones(3, np.float32) for name in UNDECAYED}}
    )
    for p in named.values():
        p.grad = torch.zeros_like(p)
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    optimizer.step()
    assert torch.equal(named["matrix"], torch.zeros(2, 2)) and torch.equal(named["bias"], torch.ones(3))


def test_parameters_without_gradient_do_not_move() -> None:
    named, optimizer = ours(start())
    before = named["table"].detach().clone()
    optimizer.step()
    assert not optimizer.state
    for name, p in named.items():
        p.grad = None if name == "table" else torch.ones_like(p)
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    optimizer.step()
    assert torch.equal(named["table"], before) and named["table"] not in optimizer.state


def test_norms_of_shards_reduce_to_those_of_the_whole() -> None:
    """Half of each tensor's rows, with the squares of the other half added, moves as the whole does."""
    whole, optimizer = ours({name: w for name, w in start().items() if name in ("matrix", *UNDECAYED)})
    seen: list[Tensor] = []
    optimizer.shards = Adding(lambda squares: (seen.append(squares.clone()), squares)[1])
    for p in whole.values():
        p.grad = torch.ones_like(p)
    halves = {name: p.detach().numpy()[: len(p) // 2].copy() for name, p in whole.items()}
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    optimizer.step()
    parts, sharded = ours(halves, lambda squares: seen[0])
    for p in parts.values():
        p.grad = torch.ones_like(p)
    for group in sharded.param_groups:
        group["lr"] = 0.1
    sharded.step()
    assert seen[0].shape == (2, 3) and seen[0].dtype == torch.float64
    for name, p in parts.items():
        torch.testing.assert_close(p, whole[name][: len(p)], rtol=1e-6, atol=0)


def test_state_dict_round_trip_goes_on_bit_for_bit() -> None:
    named, optimizer = ours(start())
    run(named, optimizer, range(5))
    other_named, other = ours(start())
    run(other_named, other, range(3))
    third_named, third = ours({name: p.detach().numpy().copy() for name, p in other_named.items()})
    third.load_state_dict(other.state_dict())
    run(third_named, third, range(3, 5))
    assert all(torch.equal(third_named[name], p) for name, p in named.items())


class Calls(TorchDispatchMode):
    """Counts what torch is asked for."""

    number = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.number += 1
        return func(*args, **(kwargs or {}))


def test_an_update_asks_torch_as_often_for_many_tensors_as_for_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU, where each question is a kernel or several; on a CPU the norms are taken one by one."""
    monkeypatch.setattr(norms, "_by_rows", norms._at_once)
    asked = []
    for copies in (1, 5):
        weights = {f"{name} {copy}": w for name, w in start().items() for copy in range(copies)}
        named = {name: torch.nn.Parameter(torch.tensor(w)) for name, w in weights.items()}
        groups = [{"params": list(named.values()), "weight_decay": 0.01}]
        optimizer = Lamb(groups, LambConfig(bias_correction=False))
        for p in named.values():
            p.grad = torch.ones_like(p)
        optimizer.step()  # the first makes the moments
        with Calls() as calls:
            clip_global_norm([p.grad for p in named.values() if p.grad is not None], 1.0)
            optimizer.step()
        asked.append(calls.number)
    assert asked[0] == asked[1] < 50
