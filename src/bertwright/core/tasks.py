"""Task lists, and the process pool that works through them.

A task is a picklable value; a function turns it into one named output, skips it if the output exists, and returns what
it counted. An executor decides nothing about the result: which worker does which task leaves no trace in the output.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures import Executor as Submitter
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Protocol, Self, TypeVar

from bertwright.core.errors import DataError
from bertwright.core.log import SILENT, Log
from bertwright.core.resources import default_workers
from bertwright.core.signals import POLL_SECONDS, Stopped, block_signals, check_stop, end_process

Task = TypeVar("Task")
Result = TypeVar("Result")

AHEAD = 4
"""Maximum number of unfinished tasks per worker that are taken from the list."""


class Executor(Protocol):
    """Works through task lists inside a `with` block."""

    def map(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        stage: str,
        on_done: Callable[[Result], None] | None = None,
    ) -> list[Result]:
        """`[function(task) for task in tasks]`, in task order; this process calls `on_done` as each task ends.

        Tasks are taken one by one, a few per worker ahead, so they may be generated while others run. The first
        failure is raised unchanged and no further task is started. Errors name the recipe section `stage`.
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Pool:
    """An executor with `workers` processes on this machine (1: this process; 0: one per processor it may use).

    The processes start once there are two tasks to do, and are gone at the end, whatever ends it. `log` reports a
    process that has been stopped (SIGSTOP), because the pool waits for its task until it continues.
    """

    def __init__(self, workers: int, log: Log = SILENT) -> None:
        self._workers, self._log = workers or default_workers(), log
        self._pool: ProcessPoolExecutor | None = None
        self._stopped, self._reported = set[int](), set[int]()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            workers = _workers()
            if isinstance(error, KeyboardInterrupt | Stopped):
                self._stop.close()
                for worker in filter(_is_stopped, workers):  # it would end only when continued
                    worker.kill()
            self._pool.shutdown(wait=False, cancel_futures=True)
            while workers := [worker for worker in workers if not wait_for([worker.sentinel], 0)]:
                wait_for([worker.sentinel for worker in workers], POLL_SECONDS)
                self._report_stopped()
            self._stop.close()
            self._pool = None

    def map(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        stage: str,
        on_done: Callable[[Result], None] | None = None,
    ) -> list[Result]:
        """As `Executor.map`; a worker killed from outside (out of memory) is a `DataError`."""
        stream = iter(tasks)
        first = list(islice(stream, 2))
        tasks = chain(first, stream)
        if self._workers <= 1 or len(first) < 2:
            return [_report_result(function(task), on_done) for task in tasks]
        if self._pool is None:
            stop, self._stop = multiprocessing.Pipe(duplex=False)
            self._pool = ProcessPoolExecutor(self._workers, _Context(), initializer=_begin, initargs=(stop,))
        self._stage = stage
        try:
            return map_ahead(self._pool, function, tasks, AHEAD * self._workers, on_done, self._report_stopped)
        except BrokenProcessPool as error:
            raise DataError(
                f"{stage}: a worker process was killed (out of memory?). Run the same command again with fewer workers "
                f"({stage}.workers=1): what is finished is kept."
            ) from error

    def _report_stopped(self) -> None:
        """Report once for each worker process that it is stopped, and how to continue it."""
        stopped = {worker.pid or 0 for worker in _workers() if _is_stopped(worker)}
        # At the second poll: a job that a shell suspends and continues (Ctrl-Z, fg) has this process awake first.
        for pid in sorted((stopped & self._stopped) - self._reported):
            self._log.say(
                f"{self._stage}: worker process {pid} is stopped, and is waited for; to continue it: kill -CONT {pid}"
            )
        self._reported = stopped & (self._reported | self._stopped)
        self._stopped = stopped


def map_ahead(
    pool: Submitter,
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    ahead: int,
    on_done: Callable[[Result], None] | None,
    on_look: Callable[[], None] = lambda: None,
) -> list[Result]:
    """Submit the tasks with at most `ahead` of them unfinished; returns the results in task order.

    `on_look` is called every `POLL_SECONDS` seconds at least, while tasks are waited for.
    """
    results: dict[int, Result] = {}
    running: dict[Future[Result], int] = {}

    def collect(most: int) -> None:
        while len(running) > most:
            for future in wait(running, POLL_SECONDS, FIRST_COMPLETED).done:
                results[running.pop(future)] = _report_result(future.result(), on_done)
            check_stop()
            on_look()

    for number, task in enumerate(tasks):
        running[pool.submit(function, task)] = number
        collect(ahead - 1)
    collect(0)
    return [results[number] for number in range(len(results))]


def _report_result(result: Result, on_done: Callable[[Result], None] | None) -> Result:
    check_stop()
    if on_done:
        on_done(result)
    return result


class _Worker(SpawnProcess):
    """A spawned process that does not import the caller's main module.

    Python would run a script without a main guard again in every worker, and has nothing to import for a notebook or
    standard input. Tasks are functions of this package and need neither. The process does not receive stop signals
    either: its parent handles them.
    """

    def start(self) -> None:
        with _starting:
            main = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")  # has no name and no file to pass to the child
            try:
                with block_signals():
                    super().start()
            finally:
                sys.modules["__main__"] = main


class _Context(SpawnContext):
    Process = _Worker


def _workers() -> list[_Worker]:
    return [child for child in multiprocessing.active_children() if isinstance(child, _Worker)]


def _is_stopped(worker: _Worker) -> bool:
    """Whether a signal has stopped the process, where the system says so (/proc)."""
    try:
        # The name of a program, in brackets, may have spaces and brackets in it.
        return Path(f"/proc/{worker.pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"
    except OSError:
        return False


_starting = threading.Lock()


def _begin(stop: Connection) -> None:
    """Initialize a new worker: watch the other end of `stop`."""
    threading.Thread(target=_end_in_time, args=(stop,), daemon=True).start()


def _end_in_time(stop: Connection) -> None:
    """Exit when the parent says so or dies, however it dies: a worker would otherwise wait for work forever.

    At once, as by a kill: an exception raised from outside could pass for an error of what the task reads, and be noted
    as its result. The next start removes what the task has not finished.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait_for([parent.sentinel, stop])
    end_process(1)
