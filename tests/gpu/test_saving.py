"""A checkpoint is written from a copy in pinned memory while the weights on the GPU move on."""

import pytest
import torch

from bertwright.train.checkpoints.store import copy_to_host
from bertwright.train.checkpoints.tensor_files import Snapshot

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU"),
]


def test_the_copy_is_of_the_moment() -> None:
    weights = {"w": torch.arange(1_000_000, device="cuda", dtype=torch.float32)}
    before = weights["w"].cpu()
    first = copy_to_host(Snapshot(weights, {"step": torch.tensor(3)}, None), None)
    weights["w"].mul_(2)
    assert torch.equal(first.weights["w"], before) and first.weights["w"].is_pinned()
    again = copy_to_host(Snapshot(weights, {"step": torch.tensor(4)}, None), first)
    assert again.weights["w"] is first.weights["w"] and torch.equal(again.weights["w"], 2 * before)
