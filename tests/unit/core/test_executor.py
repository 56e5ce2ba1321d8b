"""What every executor keeps to: order, look-ahead, failures, and nothing left of one list in the next."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.rows import each_row
from tests.unit.cluster import cluster

from bertwright.core.dask import Dask
from bertwright.core.errors import DataError
from bertwright.core.log import Silent
from bertwright.core.signals import Stopped
from bertwright.core.tasks import AHEAD, Executor, Pool

pytestmark = pytest.mark.heavy


@contextmanager
def one_process() -> Iterator[Executor]:
    with Pool(1) as pool:
        yield pool


@contextmanager
def two_processes() -> Iterator[Executor]:
    with Pool(2) as pool:
        yield pool


@contextmanager
def two_dask_workers() -> Iterator[Executor]:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'bertwright[dask]'")
    with cluster(1, 1) as address, Dask(address) as dask:
        yield dask


@pytest.fixture(scope="module", params=[one_process, two_processes, two_dask_workers], ids=lambda make: make.__name__)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    with request.param() as made:
        yield made


def square(n: int) -> int:
    return n * n


def fail_at_three(n: int) -> int:
    if n == 3:
        raise DataError("task 3 cannot be read")
    return n


def test_results_are_in_task_order_and_each_is_reported(executor: Executor) -> None:
    seen: list[int] = []
    assert executor.map(square, range(6), "corpus", seen.append) == [0, 1, 4, 9, 16, 25]
    assert sorted(seen) == [0, 1, 4, 9, 16, 25]


@each_row("length", [0, 1])
def test_lists_may_be_short(executor: Executor, length: int) -> None:
    assert executor.map(square, range(length), "corpus") == [0] * length


def test_tasks_are_taken_from_the_list_a_few_ahead_of_the_work(executor: Executor) -> None:
    taken = done = most = 0

    def tasks() -> Iterator[int]:
        nonlocal taken, most
        for n in range(60):
            taken += 1
            most = max(most, taken - done)
            yield n

    def on_done(_: int) -> None:
        nonlocal done
        done += 1

    assert executor.map(square, tasks(), "corpus", on_done) == [n * n for n in range(60)]
    assert done == 60 and 1 <= most <= AHEAD * 2


def test_the_first_failure_is_raised_and_stops_the_list(executor: Executor) -> None:
    taken: list[int] = []
    with pytest.raises(DataError, match="task 3 cannot be read"):
        executor.map(fail_at_three, (taken.append(n) or n for n in range(2000)), "corpus")
    # Dask does a failed task again before it gives up, and takes others meanwhile: how many is a matter of time.
    assert len(taken) < 2000
    assert executor.map(square, range(3), "corpus") == [0, 1, 4], "another list can follow"


class Continuing(Silent):
    """Keeps what is said, and then does as it says, or `instead`."""

    def __init__(self, instead: BaseException | None = None) -> None:
        self.said: list[str] = []
        self._instead = instead

    def say(self, message: str) -> None:
        self.said.append(message)
        if self._instead:
            raise self._instead
        os.kill(int(message.rpartition("kill -CONT ")[2]), signal.SIGCONT)


def stop_oneself(n: int) -> int:
    if n == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    return os.getpid()


def own_process(n: int) -> int:
    return os.getpid()


on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the state of a process is asked of /proc")


@on_linux
def test_a_stopped_worker_is_reported_once_with_a_remedy() -> None:
    log = Continuing()
    with Pool(2, log) as pool:
        done = pool.map(stop_oneself, range(4), "corpus")
    pid = done[1]
    assert log.said == [f"corpus: worker process {pid} is stopped, and is waited for; to continue it: kill -CONT {pid}"]


@on_linux
def test_a_stopped_worker_does_not_block_the_end() -> None:
    with pytest.raises(Stopped), Pool(2, Continuing(Stopped(signal.SIGTERM))) as pool:
        pool.map(stop_oneself, range(4), "corpus")


@on_linux
def test_closing_a_pool_reports_a_stopped_worker() -> None:
    log = Continuing()
    with Pool(2, log) as pool:
        workers = set(pool.map(own_process, range(8), "corpus"))
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
    assert sorted(log.said) == sorted(
        f"corpus: worker process {pid} is stopped, and is waited for; to continue it: kill -CONT {pid}"
        for pid in workers
    )
