"""Freed memory stays with the process or leaves it, as requested."""

import subprocess
import sys

import pytest
from tests.rows import each_row

from bertwright.model import device
from bertwright.model.device import torch_settings
from bertwright.train.config import TrainConfig
from bertwright.train.setup.training_environment import torch_set_for

pytestmark = pytest.mark.heavy

PROGRAM = """
import resource
import torch
from bertwright.model.device import keep_freed_memory, return_freed_memory

def faults():
    for _ in range(10):  # small blocks settle beside the large one first, which takes some rounds
        torch.ones(10_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.ones(10_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    tensors = [torch.ones(2_000_000) for _ in range(20)]
    kept = tensors[-1]
    del tensors
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

print(return_freed_memory(), faults(), resident())
print(keep_freed_memory(), faults(), resident())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have other C libraries")
def test_freed_memory_is_kept_or_returned() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    returned, kept = (line.split() for line in ended.stdout.splitlines())
    if kept[0] == "False":
        pytest.skip("this C library has no mallopt")
    assert int(returned[1]) > 1000 and int(kept[1]) < int(returned[1]) / 4
    freed = 19 * 8_000_000
    assert int(kept[2]) - int(returned[2]) > 0.9 * freed


@each_row("spare", [True, False])
def test_a_training_that_checkpoints_its_activations_returns_it(spare: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for name in ("keep_freed_memory", "return_freed_memory"):
        monkeypatch.setattr(device, name, lambda name=name: asked.append(name))
    phase = {"length": 16, "batch": 8, "learning_rate": 1e-3, "steps": 1}
    config = TrainConfig.model_validate({"phases": [phase], "checkpoint_activations": spare})
    with torch_set_for(config), torch_settings(1):
        pass
    assert asked == ["return_freed_memory" if spare else "keep_freed_memory", "keep_freed_memory"]
