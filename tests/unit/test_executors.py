"""Corpus and examples are the same to the bit, whatever does their task lists and however they are shared."""

import itertools
import lzma
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tests.unit.cluster import cluster

from bertwright import Recipe, run
from bertwright.core.artifact import open_artifact
from bertwright.core.dask import Dask
from bertwright.core.errors import RecipeError
from bertwright.core.log import Silent
from bertwright.core.work_split import WorkSplit

pytestmark = pytest.mark.heavy

Load = Callable[..., Recipe]
MANY = ("corpus.shard_bytes=1024",)
"""Settings that make long task lists of a small text; so do small pieces."""
PIECE = 2_000


class Heard(Silent):
    """Remembers what was said, and calls `on_progress` as work proceeds."""

    def __init__(self, on_progress: Callable[[], None] = lambda: None) -> None:
        self.said: list[str] = []
        self._on_progress = on_progress

    def say(self, message: str) -> None:
        self.said.append(message)

    def progress(self, *_: Any, **__: Any) -> None:
        self._on_progress()


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.corpus.sources.pieces.PLAIN_BYTES", PIECE)


@pytest.fixture(scope="module")
def alone(small_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process makes."""
    folder = tmp_path_factory.mktemp("alone")
    recipe = Recipe.load(small_recipe, MANY)
    run(recipe, folder, ["corpus", "vocab", "examples"])
    assert len(open_artifact(folder / "corpus").names("shards/")) > 20
    return made(folder)


def made(folder: Path) -> dict[str, Any]:
    """The files of both artifacts with their hashes, and what was counted."""
    manifests = [open_artifact(folder / stage).manifest for stage in ("corpus", "examples")]
    return {manifest["stage"]: (manifest["files"], manifest["counts"]) for manifest in manifests}


def test_two_processes(alone: dict[str, Any], load: Load, tmp_path: Path) -> None:
    run(load(*MANY, "corpus.workers=2", "examples.workers=2"), tmp_path, ["corpus", "vocab", "examples"])
    assert made(tmp_path) == alone


def test_dask_also_when_a_worker_is_killed(alone: dict[str, Any], load: Load, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'bertwright[dask]'")
    with cluster(1, 1) as address:
        run(load(*MANY), tmp_path, ["corpus", "vocab"], executor=Dask(address))
        with Dask(address) as dask:
            victim = dask.map(_own_process, [0], "corpus")[0]
        struck = iter([victim])
        log = Heard(lambda: [os.kill(pid, signal.SIGKILL) for pid in itertools.islice(struck, 1)] and None)
        run(load(*MANY), tmp_path, ["examples"], log, executor=Dask(address))
        assert not list(struck), "the worker was killed during the run"
    assert made(tmp_path) == alone


def _own_process(_: int) -> int:
    return os.getpid()


@each_row("order", [(0, 1, 2), (2, 0, 1)])
def test_ranks_one_after_another(order: tuple[int, ...], alone: dict[str, Any], load: Load, tmp_path: Path) -> None:
    def shared(stage: str) -> list[str]:
        log = Heard()
        for rank in order:
            assert not (tmp_path / stage / "manifest.json").exists()
            run(load(*MANY), tmp_path, [stage], log, share=WorkSplit(rank, 3))
        return [message for message in log.said if "rank" in message]

    assert [f"rank {rank} of 3 is done" in said for rank, said in zip(order[:2], shared("corpus"), strict=True)] == [
        True,
        True,
    ]
    run(load(*MANY), tmp_path, ["vocab"])
    assert len(shared("examples")) == 2
    assert made(tmp_path) == alone
    run(load(*MANY), tmp_path, ["corpus"], share=WorkSplit(0, 3))
    assert made(tmp_path) == alone
    assert not list(tmp_path.glob(".*.draft"))


def test_ranks_of_a_source_that_is_decoded_from_its_beginning(
    alone: dict[str, Any], small_recipe: Path, load: Load, tmp_path: Path
) -> None:
    text = (small_recipe.parent / "text.txt").read_bytes()
    (tmp_path / "text.txt.xz").write_bytes(lzma.compress(text))
    settings = (*MANY, f"corpus.source={tmp_path / 'text.txt.xz'}")
    for rank in (1, 0):
        run(load(*settings), tmp_path / "run", ["corpus"], share=WorkSplit(rank, 2))
    assert open_artifact(tmp_path / "run" / "corpus").manifest["files"] == alone["corpus"][0]


RANK = """
import os, signal, sys
from bertwright import Recipe, run
from bertwright.core.work_split import WorkSplit
from bertwright.corpus.sources import pieces

pieces.PLAIN_BYTES = int(sys.argv[1])
recipe, out, rank, killed_at = Recipe.load(sys.argv[2], sys.argv[5:]), sys.argv[3], *map(int, sys.argv[4].split("/"))
writes, replace = 0, os.replace

def counted(*arguments):
    global writes
    writes += 1
    if writes == killed_at:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*arguments)

os.replace = counted
run(recipe, out, ["corpus"], share=WorkSplit(rank, 3))
"""


def test_ranks_at_the_same_time_one_of_them_killed(
    alone: dict[str, Any], small_recipe: Path, load: Load, tmp_path: Path
) -> None:
    def start(rank: int, killed_at: int = 0) -> subprocess.Popen[bytes]:
        arguments = [PIECE, small_recipe, tmp_path, f"{rank}/{killed_at}", *MANY]
        return subprocess.Popen([sys.executable, "-c", RANK, *map(str, arguments)])

    ranks = [start(0), start(1, killed_at=12), start(2)]
    assert [rank.wait() for rank in ranks] == [0, -9, 0]
    assert not (tmp_path / "corpus").exists()
    again = [start(rank) for rank in range(3)]
    assert [rank.wait() for rank in again] == [0, 0, 0]
    run(load(*MANY), tmp_path, ["vocab", "examples"])
    assert made(tmp_path) == alone


@each_row(("rank", "world"), [(3, 3), (-1, 2), (1, 1), (0, 0)])
def test_a_rank_outside_its_world_is_refused(rank: int, world: int, load: Load, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=f"--rank {rank} --world {world}"):
        run(load(), tmp_path, ["corpus"], share=WorkSplit(rank, world))


@each_row("names", [["vocab"], ["corpus", "vocab"]])
def test_only_one_stage_can_be_shared(names: list[str], load: Load, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="--world 2: ranks can share only one of the stages corpus, examples"):
        run(load(), tmp_path, names, share=WorkSplit(0, 2))
