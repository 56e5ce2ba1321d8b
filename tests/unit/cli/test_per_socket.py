"""Ranks that one command starts: bound to their cores, heard of signals, ended together with one sentence."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bertwright.cli import per_socket
from bertwright.cli.per_socket import refuse_other_ranks, train_on
from bertwright.core.errors import RankError, RecipeError
from bertwright.core.resources import Processors
from bertwright.core.signals import end_on_signals

pytestmark = pytest.mark.heavy

CPUS = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
TWO = pytest.mark.skipif(len(CPUS) < 2, reason="two processors are needed, which only Linux tells")
Ranks = Callable[[str], None]


@pytest.fixture
def ranks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ranks:
    """`ranks(program)`: two of this Python program, on a processor each; `rank` and `folder` are known to it."""
    for name in ("RANK", "WORLD_SIZE", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(per_socket, "TO_LEAVE", 2.0)

    def start(program: str) -> None:
        begin = "import json, os, pathlib, signal, sys, time\n"
        begin += f"rank, folder = int(os.environ['RANK']), pathlib.Path({str(tmp_path)!r})\n"
        begin += "(folder / f'{rank}.process').write_text(str(os.getpid()))\n"
        monkeypatch.setattr(per_socket, "PROGRAM", (sys.executable, "-I", "-S", "-c", begin + program))
        train_on([Processors(f"socket {i}", (CPUS[i],), 1) for i in range(2)], ["train", "recipe.toml"])

    return start


@TWO
def test_each_rank_has_its_cores_and_knows_its_place(ranks: Ranks, tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    ranks(
        "facts = {**os.environ, 'cpus': sorted(os.sched_getaffinity(0)), 'argv': sys.argv[1:]}\n"
        "(folder / str(rank)).write_text(json.dumps(facts))"
    )
    facts = [json.loads((tmp_path / str(rank)).read_text()) for rank in range(2)]
    for rank, found in enumerate(facts):
        assert found["cpus"] == [CPUS[rank]] and found["argv"] == ["train", "recipe.toml"]
        expected = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "OMP_NUM_THREADS": 1}
        assert {name: int(found[name]) for name in expected} == expected and found["MASTER_ADDR"] == "127.0.0.1"
    assert facts[0]["MASTER_PORT"] == facts[1]["MASTER_PORT"] and os.sched_getaffinity(0) == before


@TWO
def test_the_number_of_threads_that_the_user_gives_is_left_alone(
    ranks: Ranks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    ranks("(folder / str(rank)).write_text(os.environ['OMP_NUM_THREADS'])")
    assert [(tmp_path / str(rank)).read_text() for rank in range(2)] == ["3", "3"]


@TWO
@pytest.mark.parametrize(
    ("fails", "other", "code"),
    [
        ("sys.exit(3)", "time.sleep(600)", 3),  # the other waits for it, and is ended
        ("sys.exit(4)", "sys.exit(6)", 4),  # the other has said that it is lost
        ("os.kill(os.getpid(), signal.SIGKILL)", "time.sleep(0.2); sys.exit(6)", 137),
        ("sys.exit(2)", "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)", 2),
    ],
    ids=["waiting", "lost", "killed", "deaf"],
)
def test_where_one_fails_all_are_ended_with_its_exit_code(
    ranks: Ranks, fails: str, other: str, code: int, tmp_path: Path
) -> None:
    said = (
        rf"rank 1 of 2 \(socket 1\) failed with exit code {code}, so the other ranks were stopped\. Correct the cause"
    )
    with pytest.raises(RankError, match=said) as raised:
        ranks(f"if rank:\n    {fails}\n{other}")
    assert raised.value.exit_code == code
    # Asked of each: the process of the tests may have other children. One may be ended before it has said who it is.
    for process in tmp_path.glob("*.process"):
        with pytest.raises(ProcessLookupError):
            os.kill(int(process.read_text()), 0)


@TWO
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
@pytest.mark.parametrize("listens", [True, False])
def test_signals_are_handed_on_to_all(ranks: Ranks, number: int, listens: bool, tmp_path: Path) -> None:
    """Once to each; one that is still loading is ended by the signal itself, which is no failure."""

    def ask() -> None:
        while not all((tmp_path / str(rank)).exists() for rank in range(2)):
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    threading.Thread(target=ask).start()
    heard = "def stop(number, frame):\n    (folder / f'heard{rank}').write_text(str(number))\n    sys.exit(75)\n"
    heard += f"signal.signal({int(number)}, {'stop' if listens else 'signal.SIG_DFL'})\n"
    with pytest.raises(SystemExit) as ended, end_on_signals():
        ranks(heard + "(folder / str(rank)).touch()\ntime.sleep(600)")
    assert ended.value.code == (130 if number == signal.SIGINT and not listens else 75)
    if listens:
        assert [(tmp_path / f"heard{rank}").read_text() for rank in range(2)] == [str(int(number))] * 2


@TWO
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("started", [0, 1])
def test_after_a_signal_no_rank_starts(
    ranks: Ranks, number: int, started: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one would otherwise wait for the others, and train as if nothing had been said."""
    start, processes = per_socket._start, list[subprocess.Popen[bytes]]()

    def asked(*arguments: Any) -> subprocess.Popen[bytes]:
        processes.append(start(*arguments))
        os.kill(os.getpid(), number)
        return processes[-1]

    if started:
        monkeypatch.setattr(per_socket, "_start", asked)
    else:
        monkeypatch.setattr(per_socket, "_free_port", lambda: os.kill(os.getpid(), number))
    with pytest.raises(SystemExit) as ended, end_on_signals():
        ranks("time.sleep(60)")
    assert ended.value.code == (130 if number == signal.SIGINT else 75)
    assert [process.returncode for process in processes] == [-number] * started
    assert len(list(tmp_path.glob("*.process"))) <= started


def test_a_launcher_of_ranks_or_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe: Any = SimpleNamespace(train=SimpleNamespace(device="auto"))
    monkeypatch.setattr(per_socket, "training_gpus", lambda recipe: (80 * 10**9,))
    with pytest.raises(RecipeError, match=r"train on CPUs, but train\.device = auto uses a GPU\. Set train"):
        refuse_other_ranks(recipe)
    monkeypatch.setattr(per_socket, "training_gpus", lambda recipe: ())
    refuse_other_ranks(recipe)
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(RecipeError, match=r"RANK=1 in the environment .* start ranks themselves\. Leave the option"):
        refuse_other_ranks(recipe)
