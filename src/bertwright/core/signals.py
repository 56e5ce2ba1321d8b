"""The signals that request a stop: training saves a checkpoint first, everything else ends at once.

Schedulers send SIGTERM; SIGHUP means that a terminal or connection is gone; SIGUSR1 and SIGUSR2 are early warnings
(Slurm's `--signal`, SGE, LSF); SIGINT is Ctrl-C. A signal that was ignored when the program started (nohup, a
background job) stays ignored. Worker processes receive none of them: the process that started them ends them.

A signal only sets a flag. An exception raised by its handler could surface inside a callback of a library, which may
swallow it or report it as another error, such as a damaged file. The program looks at the flag at safe points
(`check_stop`): before it writes or prints something, while it waits, between tasks. If it reaches none of them in time,
and at a second signal, a thread ends the process, which is harmless because files are complete or absent. A process
that only waits for others hands signals on to them (`forward_signals`); if they do not end soon after a second one, the
thread ends them too, also those that are stopped or ignore signals.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from bertwright.core.errors import Interrupted

if TYPE_CHECKING:
    from subprocess import Popen

ASKING = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that lead to exit code 75; SIGINT leads to 130."""
ALL = (*ASKING, signal.SIGINT)
PATIENCE = 2.0
"""Seconds in which the program may reach a safe point before the process is ended anyway; and in which programs that
have received a second signal may end by themselves."""
SAME = 1.0
"""Seconds after the first signal in which others are the same request: launchers such as torchrun send their processes
the signal that the scheduler or the terminal has sent them already."""
POLL_SECONDS = 0.1
"""Seconds between two looks at the flag while waiting."""
PROGRAMS: dict[Popen[Any], str] = {}
"""Programs that end with this process, each with its name in messages."""
STARTING = threading.Lock()
"""Held while a program starts, so that none is missing in `PROGRAMS`."""
_BY_CTRL_C = 130

Handler = Callable[[int, FrameType | None], None]


@dataclass
class _Request:
    """What signals have requested of this process."""

    number: int = 0
    """The first signal; 0: none."""
    raised: bool = False
    """Whether the program is ending because of it, or of an error that ended training: safe points raise only once."""
    saving: int = 0
    """Number of open blocks of `stop_on_signals`, which end by themselves, however long that takes."""
    forwarding: bool = False
    """Whether signals are for the programs that this process waits for."""
    watched: bool = False
    """Whether a thread ends the process if nothing else does."""


_request = _Request()


class Stopped(BaseException):
    """Raised at a safe point after a signal; no `KeyboardInterrupt`, which the command-line library would swallow."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = _BY_CTRL_C if number == signal.SIGINT else Interrupted.exit_code


def exit_message(stop: Stopped) -> tuple[str, int]:
    """The final message and the exit code."""
    if stop.exit_code == _BY_CTRL_C:
        return "interrupted. Run the same command again to continue.", stop.exit_code
    return f"stopped by {stop}. What is finished is kept: run the same command again.", stop.exit_code


def check_stop() -> None:
    """A safe point: raise `Stopped` if a signal has requested a stop. Does nothing where training saves first or
    signals are handed on, in threads, and once it has raised."""
    waits = _request.raised or _request.saving or _request.forwarding
    if _request.number and not waits and _in_main_thread():
        _request.raised = True
        raise Stopped(_request.number)


def stop_requested() -> int:
    """The first signal that has requested a stop; 0: none."""
    return _request.number


def handles_signals() -> bool:
    """Whether `check_stop` may raise here."""
    return _request.watched and _in_main_thread()


def pause(seconds: float) -> None:
    """Sleep; a signal ends the pause (`check_stop`)."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        check_stop()
        time.sleep(min(left, POLL_SECONDS))


@contextmanager
def end_on_signals(process_ends: bool = False) -> Iterator[None]:
    """Inside the block, signals are handled as this module says; inside another such block it does nothing.

    If the `process_ends` after the block, signals have no effect after it: nothing is left to stop, and the exit code
    stands.
    """
    if not _in_main_thread() or _request.watched:
        yield
        return
    _request.number, _request.raised, _request.watched = 0, False, True
    try:
        with _install(_note, last=signal.SIG_IGN if process_ends else None), _watch_signals():
            yield
    finally:
        _request.watched = False


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether a signal has requested a stop.

    The process ends at a second signal only. An `Interrupted` that leaves the block gets the exit code of the first
    one: 130 after SIGINT, else 75. Used without the command line, the handlers that were installed before receive the
    second signal.
    """
    if _request.watched or not _in_main_thread():
        with _count_saving():
            yield lambda: _request.number != 0
        return
    _request.number, _request.raised = 0, False
    before = {number: signal.getsignal(number) for number in ALL}
    first_at = 0.0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal first_at
        if not _request.number:
            _request.number, first_at = number, time.monotonic()
        elif time.monotonic() - first_at > SAME:
            signal.signal(number, before[signal.Signals(number)] or signal.SIG_DFL)
            signal.raise_signal(number)

    try:
        with _install(note), _count_saving():
            yield lambda: _request.number != 0
    finally:
        _request.number = 0


@contextmanager
def _count_saving() -> Iterator[None]:
    _request.saving += 1
    try:
        yield
    except BaseException as error:
        # 75 makes a scheduler requeue; after Ctrl-C the user wants neither that nor the script's next line.
        if isinstance(error, Interrupted) and _request.number == signal.SIGINT:
            error.exit_code = _BY_CTRL_C
        _request.raised = True
        raise
    finally:
        _request.saving -= 1


@contextmanager
def forward_signals(take: Callable[[int], None]) -> Iterator[None]:
    """Inside the block, `take` is called with the number of each signal, to hand it on to what is in `PROGRAMS`. A
    signal has no other effect here, unless the block lasts for `PATIENCE` after a second one: then the process ends,
    and kills and names the programs that still run."""
    if not _request.watched:
        _request.number, _request.raised = 0, False

    def hand_on(number: int, frame: FrameType | None) -> None:
        _note(number, frame)
        take(number)

    _request.forwarding = True
    try:
        with _install(hand_on):
            if _request.number and not _request.raised:  # it arrived just before
                take(_request.number)
            yield
    finally:
        _request.raised = _request.raised or _request.number != 0
        _request.forwarding = False


@contextmanager
def delay_signals() -> Iterator[None]:
    """Signals that arrive inside the block are handled right after it."""
    came: list[int] = []
    try:
        with _pause_watch(), _install(lambda number, frame: came.append(number)):
            yield
    finally:
        for number in came:
            signal.raise_signal(number)


@contextmanager
def block_signals() -> Iterator[None]:
    """Processes started inside never receive the signals; this process receives them after the block."""
    # A process inherits its parent's signal mask, so there is no moment at which it could receive one.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_process(code: int) -> None:
    """End this process now, from any thread, with the programs that end with it."""
    STARTING.acquire(timeout=1)
    for process in tuple(PROGRAMS):
        kill_all(process.pid)
    os._exit(code)


def kill_all(program: int) -> None:
    """Kill a program, its process group, and its descendants, which torchrun starts in sessions of their own."""
    found, groups = [program], {program}
    for process in found:
        found += _children(process)
    for process in found:
        with suppress(ProcessLookupError):
            if (group := os.getpgid(process)) == os.getpgrp():  # on the terminal, a program is in this process's group
                os.kill(process, signal.SIGKILL)
            else:
                groups.add(group)
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _children(process: int) -> list[int]:
    """The children of a process; none where the system does not list them."""
    found: list[int] = []
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, thread.read_text().split())
    return found


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _note(number: int, frame: FrameType | None) -> None:
    _request.number = _request.number or number


@contextmanager
def _install(handler: Handler, last: signal.Handlers | None = None) -> Iterator[None]:
    """Install `handler` for all signals that are not ignored, and `last` after the block, by default what was there;
    only the main thread can do that."""
    # nohup and background jobs ignore signals on purpose.
    handled = [number for number in ALL if _in_main_thread() and signal.getsignal(number) != signal.SIG_IGN]
    before: dict[signal.Signals, Any] = {number: signal.signal(number, handler) for number in handled}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier if last is None else last)


@contextmanager
def _pause_watch() -> Iterator[None]:
    """Inside the block, the thread of `_watch_signals` learns of no signals."""
    watched = signal.set_wakeup_fd(-1) if _in_main_thread() else -1
    try:
        yield
    finally:
        if watched != -1:
            signal.set_wakeup_fd(watched, warn_on_full_buffer=False)


@contextmanager
def _watch_signals() -> Iterator[None]:
    """End the process at a second signal, or `PATIENCE` after it if signals are handed on; or if it reaches no safe
    point within `PATIENCE` after the first."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    thread = threading.Thread(target=_watch, args=(reading,), name="signals", daemon=True)
    try:
        thread.start()
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)
        if thread.ident:
            thread.join()
        os.close(reading)


def _watch(reading: int) -> None:
    first_at = since = second_at = 0.0
    last = 0
    while True:
        ready = select.select([reading], [], [], POLL_SECONDS if first_at else None)[0]
        now = time.monotonic()
        numbers = os.read(reading, 64) if ready else b""
        if ready and not numbers:
            return
        for number in numbers:
            if number not in ALL:
                continue
            if first_at and now - first_at > SAME:
                if not _request.forwarding:
                    _end_with(f"ended at once by a second signal, {signal.Signals(number).name}", number)
                second_at, last = second_at or now, number
            first_at, since = first_at or now, since or now
            _request.number = _request.number or number  # the main thread may handle it much later
        if _request.forwarding and second_at and now - second_at > PATIENCE:
            running = ", ".join(name for process, name in PROGRAMS.items() if process.poll() is None)
            _end_with(
                f"ended by a second signal, {signal.Signals(last).name}; killed what did not end: {running}", last
            )
        if _request.saving or _request.raised or _request.forwarding:  # it ends by itself
            since = now
        elif first_at and now - since > PATIENCE:
            message, _ = exit_message(Stopped(_request.number))
            _end_with(message.partition(". ")[0], _request.number)


def _end_with(why: str, number: int) -> None:
    """Say why, and end the process."""
    text = f"\nbertwright: {why}. What is finished is kept: run the same command again to continue.\n"
    if os.isatty(2):
        text = f"\x1b[?25h{text}"  # a progress bar hides the cursor
    # Not with `sys.stderr`: another thread may hold its lock, or nobody may read it.
    if select.select([], [2], [], 0)[1]:
        with suppress(OSError):
            os.write(2, text.encode())
    end_process(Stopped(number).exit_code)
