"""The observers of one start: given each row once, and none of them can end a training.

A training of a week does not end because a disk is full of event files or a server is gone. An observer that fails is
named at once, with what it said, and again at the end; it is closed, and given no more rows in this start.
metrics.jsonl has them all, and the next start gives an observer those that it lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from bertwright.core.errors import BertwrightError, RecipeError
from bertwright.core.log import Log
from bertwright.core.redact import shown
from bertwright.train.observers.build import build_observer
from bertwright.train.observers.config import ObserverConfig
from bertwright.train.observers.observer import Observed, Observer, Row


class Watch:
    """The observers of a start, on the first rank."""

    def __init__(self, observers: Iterable[tuple[str, Observer]], log: Log) -> None:
        """Each observer with the name it is called by in sentences."""
        self._observers = list(observers)
        self._log = log
        self._failed: dict[str, int] = {}
        """The step of the first row that each failed observer lacks."""

    def record(self, row: Row, again: bool = False) -> None:
        """Give a row to each observer that has not had it, or more values of one that it has had (`again`)."""
        for name, observer in list(self._observers):
            if row["total_steps"] <= observer.seen and not again:
                continue  # trained again after a crash: the same row, which stands there already
            try:
                observer.record(row)
            # Whatever a package of strangers raises: it must not cost the training.
            except Exception as error:
                self._observers.remove((name, observer))
                self._failed[name] = row["total_steps"]
                self._log.say(
                    f"warning: the observer {name} failed at step {row['total_steps']:,} "
                    f"({_told(error)}). Training goes on without it. metrics.jsonl has every row, and "
                    "the next start gives it those that it lacks."
                )
                _give_up(observer)

    def close(self, finished: bool) -> None:
        """Close all of them, and say again which ones failed."""
        for name, observer in self._observers:
            try:
                observer.close(finished)
            except Exception as error:
                self._log.say(f"warning: the observer {name} failed at its end ({_told(error)}).")
        for name, step in self._failed.items():
            self._log.say(f"warning: the observer {name} lacks the rows from step {step:,} on: it failed there.")


@contextmanager
def watched(configs: Sequence[ObserverConfig], observed: Observed, rows: Sequence[Row], log: Log) -> Iterator[Watch]:
    """The observers of a recipe for the length of the block, given `rows` of earlier starts first.

    One that cannot begin is an error: before any work, when it can be mended.
    """
    observers: list[tuple[str, Observer]] = []
    with ExitStack() as begun:
        for config in configs:
            observers.append((config.kind, _begun(config, observed)))
            begun.callback(_give_up, observers[-1][1])
        begun.pop_all()  # all of them could begin
    watch, finished = Watch(observers, log), False
    try:
        for row in rows:
            watch.record(row)
        yield watch
        finished = True
    finally:
        watch.close(finished)


def _told(error: Exception) -> str:
    """The error of a package; addresses in its words have no names, passwords and queries."""
    return f"{type(error).__name__}: {shown(str(error))}"


def _give_up(observer: Observer) -> None:
    """Let go of what it holds, whatever it says to that."""
    with suppress(Exception):
        observer.close(False)


def _begun(config: ObserverConfig, observed: Observed) -> Observer:
    try:
        return build_observer(config, observed)
    except BertwrightError:
        raise
    except Exception as error:
        raise RecipeError(
            f"train.observers: {config.kind} cannot begin ({_told(error)}). Mend that, or leave {config.kind} out."
        ) from error
