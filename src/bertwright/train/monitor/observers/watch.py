"""The observers of one start: each receives each row once, and none of them can end a training.

A week-long training must not end because a disk is full of event files or a server is down. An observer that fails is
reported at once, with its error, and again at the end; it is closed and receives no more rows in this start.
metrics.jsonl has all rows, and the next start sends an observer the rows it lacks. A server that does not answer is
tried for many minutes by some packages; the other ranks wait that long, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from typing import assert_never

from bertwright.core.addresses import redact
from bertwright.core.errors import BertwrightError, MissingExtraError, RecipeError
from bertwright.core.log import Log
from bertwright.train.monitor.observers.config import (
    MlflowConfig,
    ObserverConfig,
    ObserverPlugin,
    TensorBoardConfig,
    TrackioConfig,
    WandbConfig,
)
from bertwright.train.monitor.observers.observer import Observed, Observer, Row

Busy = Callable[[], AbstractContextManager[None]]
"""A context in which the other ranks wait for this one, however long it takes (`Ranks.busy`)."""


class Watch:
    """The observers of a start, on rank 0."""

    def __init__(self, observers: Iterable[tuple[str, Observer]], log: Log, busy: Busy) -> None:
        """`observers`: pairs of name, as used in messages, and observer."""
        self._observers = list(observers)
        self._log, self._busy = log, busy
        self._failed: dict[str, int] = {}
        """For each failed observer, the step of the first row that it lacks."""

    def record(self, row: Row, again: bool = False) -> None:
        """Send a row to each observer that has not received it, or more values of a row that it has received
        (`again`)."""
        for name, observer in list(self._observers):
            if row["total_steps"] <= observer.seen and not again:
                continue  # trained again after a crash: the same row, which it already has
            try:
                with self._busy():
                    observer.record(row)
            # Catch everything that a third-party package raises: it must not end training.
            except Exception as error:
                self._observers.remove((name, observer))
                self._failed[name] = row["total_steps"]
                self._log.say(
                    f"warning: the observer {name} failed at step {row['total_steps']:,} ({_reason(error)}). Training "
                    "goes on without it. metrics.jsonl has every row, and the next start sends the observer the "
                    "missing ones."
                )
                with self._busy():
                    _close_quietly(observer)

    def close(self, finished: bool) -> None:
        """Close all observers, and report again which ones failed."""
        for name, observer in self._observers:
            try:
                with self._busy():
                    observer.close(finished)
            except Exception as error:
                self._log.say(f"warning: the observer {name} failed when it was closed ({_reason(error)}).")
        for name, step in self._failed.items():
            self._log.say(
                f"warning: the observer {name} does not have the rows from step {step:,} on, because it failed there."
            )


@contextmanager
def open_observers(
    configs: Sequence[ObserverConfig], observed: Observed, rows: Sequence[Row], log: Log, busy: Busy = nullcontext
) -> Iterator[Watch]:
    """Yield the observers of a recipe for the duration of the block, after sending them `rows` of earlier starts.

    An observer that cannot start is an error, raised before any work, while it can still be fixed.
    """
    observers: list[tuple[str, Observer]] = []
    with ExitStack() as begun, busy():
        for config in configs:
            observers.append((config.kind, _open(config, observed)))
            begun.callback(_close_quietly, observers[-1][1])
        begun.pop_all()  # all of them started
    watch, finished = Watch(observers, log, busy), False
    try:
        for row in rows:
            watch.record(row)
        yield watch
        finished = True
    finally:
        watch.close(finished)


def _reason(error: Exception) -> str:
    """Return a package's error as text, with names, passwords and queries removed from addresses."""
    return f"{type(error).__name__}: {redact(str(error))}"


def _close_quietly(observer: Observer) -> None:
    """Close the observer, ignoring its errors."""
    with suppress(Exception):
        observer.close(False)


def _open(config: ObserverConfig, observed: Observed) -> Observer:
    try:
        return build_observer(config, observed)
    except BertwrightError:
        raise
    except Exception as error:
        raise RecipeError(
            f"train.observers: {config.kind} cannot start ({_reason(error)}). Correct the cause, or leave "
            f"{config.kind} out."
        ) from error


def build_observer(config: ObserverConfig, observed: Observed) -> Observer:
    """Return the observer of `config`; raises `MissingExtraError` if its package is not installed, and any error of the
    package."""
    if isinstance(config, ObserverPlugin):
        return config.build(observed)
    # Located, not imported: the observer's own file first sets the variables that disable the package's telemetry.
    if find_spec(config.package) is None:
        raise MissingExtraError(
            f"train.observers = {config.kind} needs {config.package}, which is not installed: "
            f"pip install 'bertwright[{config.extra}]'."
        )
    # Each is imported only if chosen, because none of their packages is a base dependency.
    match config:
        case TensorBoardConfig():
            from bertwright.train.monitor.observers.tensorboard import TensorBoard

            return TensorBoard(config, observed)
        case MlflowConfig():
            from bertwright.train.monitor.observers.mlflow import Mlflow

            return Mlflow(config, observed)
        case TrackioConfig():
            from bertwright.train.monitor.observers.trackio import Trackio

            return Trackio(config, observed)
        case WandbConfig():
            from bertwright.train.monitor.observers.wandb import Wandb

            return Wandb(config, observed)
        case _:
            assert_never(config)
