"""Runs task lists on the workers of a Dask cluster (the extra `dask`).

A thin map: the scheduler hands each task to a worker, and to another one if that worker is lost. Tasks and outputs are
paths, so workers need the run folder and the sources at the same paths as this process, on a shared file system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from functools import partial
from types import TracebackType
from typing import Any, Self, cast

from bertwright.core import __version__
from bertwright.core.errors import DataError, MissingExtraError
from bertwright.core.tasks import AHEAD, Result, Task, map_ahead

RETRIES = 2
"""How often a failed task is retried, because a shared file system may fail temporarily."""
_SECONDS = 30


class Dask:
    """An executor on the cluster whose scheduler is at `address`, such as "tcp://10.0.0.1:8786"."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._client: Any = None

    def __enter__(self) -> Self:
        try:
            from distributed import Client
        except ImportError as error:
            raise MissingExtraError(
                "a Dask cluster needs the package distributed, which is not installed: pip install 'bertwright[dask]'."
            ) from error
        try:
            self._client = cast(Any, Client)(self._address, timeout=_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise DataError(
                f"no Dask scheduler answers at {self._address!r}: {error}. Start one (dask scheduler) and give its "
                "address, such as --dask tcp://10.0.0.1:8786."
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def map(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        stage: str,
        on_done: Callable[[Result], None] | None = None,
    ) -> list[Result]:
        """As `Executor.map`; a task lost with several workers, or a lost scheduler, is a `DataError`."""
        from distributed import KilledWorker

        # Not pure: Dask would answer an equal task from its cache although its output has been removed.
        pool = self._client.get_executor(pure=False, retries=RETRIES)
        try:
            checked = partial(_do_in_version, __version__, function)
            return map_ahead(pool, checked, tasks, AHEAD * self._workers(), on_done)
        except KilledWorker as error:
            raise DataError(
                f"{stage}: a task was lost with every worker that tried it (out of memory?): {error}. Give the workers "
                "more memory and run the same command again: what is finished is kept."
            ) from error
        except CancelledError as error:
            raise DataError(
                f"{stage}: the Dask scheduler at {self._address} is no longer reachable. Run the same command again: "
                "what is finished is kept."
            ) from error

    def _workers(self) -> int:
        """The number of workers, after waiting for the first.

        Asks the scheduler, not the workers: one that hangs or is dying must not delay the others.
        """
        try:
            self._client.wait_for_workers(1, timeout=_SECONDS)
        except TimeoutError:
            raise DataError(
                f"the Dask scheduler at {self._address} has no workers. Start some: dask worker {self._address} "
                "--nthreads 1 --nworkers N."
            ) from None
        threads: dict[str, int] = self._client.nthreads()
        if shared := [worker for worker, number in threads.items() if number > 1]:  # tasks would share its caches
            raise DataError(
                f"the Dask worker {shared[0]} has {threads[shared[0]]} threads, but each task needs a separate "
                "process. Start the workers with --nthreads 1 (and --nworkers N for N of them)."
            )
        return len(threads)


def _do_in_version(version: str, function: Callable[[Task], Result], task: Task) -> Result:
    """`function(task)` in a worker; workers may join at any time, so each task checks the version."""
    # Another version may write different bytes under the same names, and nothing could detect that later.
    if version != __version__:
        from distributed import get_worker

        worker = cast(Any, get_worker)().address
        raise DataError(
            f"the Dask worker {worker} has bertwright {__version__}, but {version} is needed, the version of this "
            "process."
        )
    return function(task)
