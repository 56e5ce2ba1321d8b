"""A rank that resumes from a checkpoint reads only its own share of the optimizer state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import read_tensors
from bertwright.optim.build import moment_names
from bertwright.optim.config import AdamWConfig
from bertwright.train.engine.config import FsdpConfig, ZeroConfig
from bertwright.train.engine.engine import build_engine
from bertwright.train.memory.held_tensors import Sharing, moment_bytes
from bertwright.train.ranks.ranks import Ranks

WORLD = 3
# Row counts that three ranks cannot share evenly.
CONFIG = BertConfig(
    vocab_size=1000, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
    max_position_embeddings=64,
)  # fmt: skip


@pytest.fixture
def group() -> Iterator[Callable[[int], Ranks]]:
    """One rank of three without its peers: nothing that it sends is waited for."""

    def open_group(rank: int) -> Ranks:
        dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=WORLD)
        return Ranks(rank, WORLD)

    yield open_group
    dist.destroy_process_group()


class Taken(TorchDispatchMode):
    """Sums the memory that operations newly allocate."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {each.untyped_storage().data_ptr() for each in args if isinstance(each, torch.Tensor)}
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.untyped_storage().data_ptr() not in given:
            self.bytes += result.untyped_storage().nbytes()
        return result


@pytest.mark.parametrize("rank", [0, WORLD - 1])
@pytest.mark.parametrize("config", [ZeroConfig, FsdpConfig])
def test_a_rank_copies_its_own_share_of_the_moments_out_of_their_file_and_nothing_else(
    config: Any, rank: int, group: Callable[[int], Ranks], tmp_path: Path
) -> None:
    model = PreTrainingModel(CONFIG)
    shapes = {name: p.shape for name, p in model.named_parameters()}
    names = [(moment, name) for name, kept in moment_names(AdamWConfig(), model).items() for moment in kept]
    moments = {f"{moment}.{name}": torch.rand(shapes[name]) for moment, name in names} | {"step": torch.tensor(3)}
    save_file(moments, tmp_path / "optimizer.safetensors")
    engine = build_engine(config(), model, AdamWConfig(), group(rank))
    saved = read_tensors(tmp_path / "optimizer.safetensors")
    with Taken() as taken:
        engine.load(saved)
    share = moment_bytes(CONFIG, Sharing(config(), AdamWConfig(), WORLD), rank)
    assert share < 0.5 * sum(tensor.nbytes for tensor in moments.values())
    assert share <= taken.bytes < share + 1000, "beside it are the counts of updates"
