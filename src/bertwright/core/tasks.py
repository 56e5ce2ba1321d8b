"""A task list on a process pool.

A task is a picklable value; the function turns it into one named output and returns what it counted. The
pool never decides anything: which worker does which task leaves no trace in the output.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for
from typing import TypeVar

from bertwright.core.errors import DataError

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_tasks(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    workers: int,
    stage: str,
    on_done: Callable[[Result], None] | None = None,
) -> list[Result]:
    """`[function(task) for task in tasks]`, on `workers` processes (1: in this one).

    `on_done` is called in this process as each task ends. The first failure stops the rest and is raised
    unchanged; a worker killed from outside (out of memory) is a `DataError` that names the recipe section `stage`.
    """
    if workers <= 1 or len(tasks) <= 1:
        results = []
        for task in tasks:
            results.append(function(task))
            if on_done:
                on_done(results[-1])
        return results
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(tasks)), context, initializer=_end_with_parent) as pool:
        futures = [pool.submit(function, task) for task in tasks]
        try:
            _collect(futures, stage, on_done)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _collect(futures: list[Future[Result]], stage: str, on_done: Callable[[Result], None] | None) -> None:
    for future in as_completed(futures):
        try:
            result = future.result()
        except BrokenProcessPool as error:
            raise DataError(
                f"{stage}: a worker process was killed (out of memory?). Run the same command again with fewer workers "
                f"({stage}.workers=1): what is finished is kept."
            ) from error
        if on_done:
            on_done(result)


def _end_with_parent() -> None:
    """Leave when the parent dies, however it dies: a pool's worker would otherwise wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)


def default_workers() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
