"""Task lists on a real Dask cluster."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.unit.cluster import cluster

from bertwright.core.dask import Dask
from bertwright.core.errors import DataError, MissingExtraError

pytestmark = pytest.mark.heavy

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'bertwright[dask]'")


def square(n: int) -> int:
    return n * n


def wait_in_the_first_process(folder: Path) -> int:
    """Leave a file named after this process; the first one then waits until it is killed."""
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) == 1:
        time.sleep(0.05)
    return os.getpid()


def own_process(_: int) -> int:
    return os.getpid()


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_worker_was_doing_is_done_by_another(tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_the_first() -> None:
        while not (names := [path.name for path in tmp_path.iterdir()]):
            time.sleep(0.05)
        killed.append(int(names[0]))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_the_first, daemon=True)
    with cluster(1, 1) as address, Dask(address) as dask:
        killer.start()
        (survivor,) = dask.map(wait_in_the_first_process, [tmp_path], "corpus")
        killer.join()
    assert survivor != killed[0]
    assert {int(path.name) for path in tmp_path.iterdir()} == {survivor, killed[0]}


def test_tasks_of_a_stopped_dask_worker_are_reassigned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "3s")
    with cluster(1, 1) as address, Dask(address) as dask:
        os.kill(dask.map(own_process, [0], "corpus")[0], signal.SIGSTOP)
        assert dask.map(square, range(4), "corpus") == [0, 1, 4, 9]


def test_a_task_that_no_worker_survives_is_an_error() -> None:
    with (
        cluster(1, 1) as address,
        Dask(address) as dask,
        pytest.raises(DataError, match="corpus: a task was lost with every worker"),
    ):
        dask.map(die, [1], "corpus")


def test_workers_of_several_threads_are_refused() -> None:
    with (
        cluster(2) as address,
        Dask(address) as dask,
        pytest.raises(DataError, match=r"has 2 threads.*--nthreads 1"),
    ):
        dask.map(square, [1], "corpus")


def test_workers_of_another_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.core.dask.__version__", "9.9")
    with (
        cluster(1) as address,
        Dask(address) as dask,
        pytest.raises(DataError, match=r"has bertwright .*, but 9.9 is need"),
    ):
        dask.map(square, [1], "corpus")


def test_a_scheduler_without_workers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with cluster() as address, Dask(address) as dask:
        monkeypatch.setattr("bertwright.core.dask._SECONDS", 0.1)
        with pytest.raises(DataError, match=r"has no workers. Start some: dask worker tcp://"):
            dask.map(square, [1], "corpus")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bertwright\[dask\]'"):
        Dask("tcp://127.0.0.1:9").__enter__()


def test_a_missing_dask_scheduler_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.core.dask._SECONDS", 1)
    for nowhere in ("tcp://127.0.0.1:9", "not an address"):
        with pytest.raises(DataError, match=r"no Dask scheduler answers at .*Start one"):
            Dask(nowhere).__enter__()
