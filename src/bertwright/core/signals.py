"""The signals that request a stop: training saves a checkpoint first, everything else ends at once.

Schedulers send SIGTERM; SIGHUP means that a terminal or connection is gone; SIGUSR1 and SIGUSR2 are early warnings
(Slurm's `--signal`, SGE, LSF); SIGINT is Ctrl-C. A signal that was ignored when the program started (nohup, a
background job) stays ignored. Worker processes receive none of them: the process that started them ends them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from bertwright.core.errors import Interrupted

ASKING = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that lead to exit code 75; SIGINT leads to 130."""
ALL = (*ASKING, signal.SIGINT)
LEAVE = signal.SIGALRM
"""Signal that a worker process sends to itself when it must exit."""
PATIENCE = 5.0
"""Seconds that a library may keep computing after a signal before the process is ended anyway."""
_BY_CTRL_C = 130
_leaving = threading.Event()
"""Set when the program is about to end because of a signal, or of an exception that ended training."""

Handler = Callable[[int, FrameType | None], None]


class Stopped(BaseException):
    """Raised in the main thread by a signal; no `KeyboardInterrupt`, which the command-line library would swallow."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = _BY_CTRL_C if number == signal.SIGINT else Interrupted.exit_code


def farewell(stop: Stopped) -> tuple[str, int]:
    """The final message and the exit code."""
    if stop.exit_code == _BY_CTRL_C:
        return "interrupted. Run the same command again to continue.", stop.exit_code
    return f"stopped by {stop}. What is finished is kept: run the same command again.", stop.exit_code


@contextmanager
def end_on_signals() -> Iterator[None]:
    """Inside the block, signals raise `Stopped` in the main thread.

    Once a signal, or an exception that ended training, makes the program exit, only SIGINT is handled, because
    schedulers repeat their signals. A library that computes for long prevents Python from raising: the process is then
    ended after `PATIENCE`.
    """
    raised = threading.Event()
    _leaving.clear()

    def stop(number: int, frame: FrameType | None) -> None:
        raised.set()
        if _leaving.is_set() and number != signal.SIGINT:
            return
        _leaving.set()
        raise Stopped(number)

    with _handled(stop), _watched(raised):
        yield


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether a signal has requested a stop.

    A SIGINT after the first signal calls the handler that was installed before. An `Interrupted` that leaves the block
    gets the exit code of the first signal: 130 after SIGINT, else 75.
    """
    asked_by, on_interrupt = 0, signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked_by
        # A user who presses Ctrl-C twice wants no checkpoint.
        if asked_by and number == signal.SIGINT and callable(on_interrupt):
            on_interrupt(number, frame)
        asked_by = asked_by or number

    main = threading.current_thread() is threading.main_thread()
    watched = signal.set_wakeup_fd(-1) if main else -1  # no time limit here: a checkpoint may take a while
    try:
        with _handled(ask):
            try:
                yield lambda: asked_by != 0
            except BaseException as error:
                _leaving.set()
                # 75 makes a scheduler requeue; after Ctrl-C the user wants neither that nor the script's next line.
                if isinstance(error, Interrupted) and asked_by == signal.SIGINT:
                    error.exit_code = _BY_CTRL_C
                raise
    finally:
        if main:
            signal.set_wakeup_fd(watched)


@contextmanager
def handed_on(take: Callable[[int], None]) -> Iterator[None]:
    """Inside the block, `take` is called with the number of each signal, which has no other effect here."""
    watched = signal.set_wakeup_fd(-1)  # no time limit here: `take` may need a while
    try:
        with _handled(lambda number, frame: take(number)):
            yield
    finally:
        signal.set_wakeup_fd(watched)


@contextmanager
def delayed() -> Iterator[None]:
    """Signals that arrive inside the block, `LEAVE` among them, are handled right after it."""
    came: list[int] = []
    try:
        with _handled(lambda number, frame: came.append(number), (*ALL, LEAVE)):
            yield
    finally:
        for number in came:
            signal.raise_signal(number)


@contextmanager
def unheard() -> Iterator[None]:
    """Processes started inside never receive the signals; this process receives them after the block."""
    # A process inherits its parent's signal mask, so there is no moment at which it could receive one.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _handled(handler: Handler, numbers: Iterable[signal.Signals] = ALL) -> Iterator[None]:
    """Install `handler` for all signals that are not ignored; only the main thread can do that."""
    main = threading.current_thread() is threading.main_thread()
    # nohup and background jobs ignore signals on purpose.
    heard = [number for number in numbers if main and signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in heard}
    try:
        yield
    finally:
        _restore(before.items())


def _restore(handlers: Iterable[tuple[signal.Signals, Any]]) -> None:
    for number, handler in handlers:
        signal.signal(number, handler)


@contextmanager
def _watched(raised: threading.Event) -> Iterator[None]:
    """End the process if a signal has arrived and `raised` is not set within `PATIENCE`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    thread = threading.Thread(target=_end_late, args=(reading, raised), daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)
        thread.join()
        os.close(reading)


def _end_late(reading: int, raised: threading.Event) -> None:
    while number := os.read(reading, 1):
        if number[0] in ALL and not raised.wait(PATIENCE):
            message, code = farewell(Stopped(number[0]))
            sys.stderr.write(f"\nbertwright: {message}\n")
            sys.stderr.flush()
            os._exit(code)
