"""Where torch has no fused Adam for a device, as for processors before 2.4, plain operations give the same numbers."""

from typing import Any

import pytest
import torch
from tests.contract.test_optimizers import CONFIGS, build, train
from tests.rows import each_row

from bertwright.optim import adam
from bertwright.optim import build as builder
from bertwright.optim.config import LambConfig

UNUSUAL = [LambConfig(bias_correction=False), LambConfig(grad_averaging=False)]


def without_kernel(device_type: str) -> bool:
    return False


@each_row("config", [*CONFIGS, *UNUSUAL])
def test_without_the_fused_kernel_the_numbers_are_the_same(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fused, optimizer = build(config)
    train(fused, optimizer, range(5))
    for module in (adam, builder):
        monkeypatch.setattr(module, "has_fused_adam", without_kernel)
    monkeypatch.delattr(torch, "_fused_adamw_")  # it is not there to be called
    plain, its_optimizer = build(config)
    start = [p.detach().clone() for p in plain.parameters()]
    train(plain, its_optimizer, range(5))
    for one, other, before in zip(fused.parameters(), plain.parameters(), start, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)
        assert not torch.equal(other, before)


def test_the_kernels_of_torch_are_used() -> None:
    assert adam.has_fused_adam("cpu")
