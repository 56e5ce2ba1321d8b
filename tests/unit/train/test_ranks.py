"""What ranks share, seen by one rank alone; several real ones run in tests/pipeline/test_ranks.py."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import cast

import pytest
import torch
from tests.rows import each_row
from torch.distributed import PrefixStore  # type: ignore[attr-defined]

from bertwright.train.ranks import ranks
from bertwright.train.ranks.agreement import assert_equal
from bertwright.train.ranks.process_group import process_group
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.ranks.watchdog import Watchdog


def test_a_process_started_plainly_is_the_only_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with process_group(600, 8, 1800) as ranks:
        assert (ranks.rank, ranks.world, ranks.first) == (0, 1, True)
        assert not torch.distributed.is_initialized()


def test_sums_of_one_rank_are_its_own() -> None:
    tensor = torch.arange(3.0)
    Ranks().all_reduce([tensor])
    assert tensor.tolist() == [0.0, 1.0, 2.0]
    assert Ranks().all_reduce_async([3, 2**40]).result() == [3, 2**40]
    assert Ranks().any(True) and not Ranks().any(False) and Ranks().each(7) == [7]
    assert_equal(Ranks(), "recipe", "the recipe")
    Ranks().barrier()


def test_only_the_first_rank_writes() -> None:
    assert Ranks(0, 4).first and not Ranks(3, 4).first


@each_row(("gpus", "transport"), [(True, "cpu:gloo,cuda:nccl"), (False, "gloo")])
def test_gpus_send_over_nccl_and_processors_over_gloo(
    gpus: bool, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers that steer a training stay on the processor, so ranks with GPUs have both."""
    opened: list[tuple[object, ...]] = []
    monkeypatch.setattr(
        ranks.dist,
        "init_process_group",
        lambda kind, store, rank, world_size, timeout: opened.append((kind, store, rank, world_size, timeout)),
    )
    store = torch.distributed.HashStore()
    Ranks(1, 4).connect(store, gpus)
    assert opened == [(transport, store, 1, 4, ranks.NEVER)]


def test_only_device_work_is_announced_to_other_ranks() -> None:
    """A step may take a processor an hour, in which it begins nothing that is counted."""
    told: list[str] = []

    class Listening:
        passes = 0

        @contextmanager
        def doing(self, state: str) -> Iterator[None]:
            told.append(state)
            yield

    rank = Ranks(1, 4, watchdog=cast(Watchdog, listening := Listening()))
    for device in ("cpu", "cuda"):
        with rank.on_device(torch.device(device)):
            rank.count_pass()
    assert told == ["device"] and listening.passes == 2
    with Ranks().on_device(torch.device("cuda")):
        Ranks().count_pass()


def test_the_first_gpu_reduction_may_start_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NCCL looks into the store only then, and finds what rank 0 puts there when it comes to it."""
    monkeypatch.setattr(ranks.dist, "init_process_group", lambda *arguments, **settings: None)
    store = torch.distributed.HashStore()
    store.set_timeout(timedelta(seconds=0.1))  # the rest of the time to meet
    shared = PrefixStore("the secret", store)
    Ranks(1, 4).connect(shared, gpus=True)
    late = threading.Timer(0.5, lambda: shared.set("NCCL", "its address"))
    late.start()
    assert shared.get("NCCL") == b"its address"
    late.join()
