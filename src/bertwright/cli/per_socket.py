"""Starts one rank on each socket, or memory node, of this machine, bound to its cores, and ends them all together.

torchrun binds ranks to nodes only by their GPUs, gives each one thread, and always fails with exit code 1.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from bertwright.core.distributed import launcher_variable, rank_environment
from bertwright.core.errors import Interrupted, RankError, RecipeError
from bertwright.core.resources import Processors
from bertwright.core.signals import POLL_SECONDS, PROGRAMS, STARTING, Stopped, delay_signals, forward_signals
from bertwright.core.subprocess_group import PYTHON, shell_code
from bertwright.estimate.machine_facts import training_gpus
from bertwright.recipe import Recipe

PROGRAM = (*PYTHON, "-m", "bertwright.cli")
_IN_ORDER = (0, Interrupted.exit_code, 130)
"""Exit codes of a rank that has finished, or received a request to stop."""
TO_LEAVE = 20.0
"""Seconds that the other ranks have to exit by themselves when one has failed, and then to obey a signal."""


def refuse_other_ranks(recipe: Recipe) -> None:
    """Raise `RecipeError` if GPUs will train, or if a launcher has already started this process as a rank."""
    if given := launcher_variable():
        raise RecipeError(
            f"{given} in the environment says that a launcher has started this rank, but --per-socket and --per-node "
            "start ranks themselves. Leave the option out, or unset the variable."
        )
    if training_gpus(recipe):
        raise RecipeError(
            f"--per-socket and --per-node start ranks that train on CPUs, but train.device = {recipe.train.device} "
            "uses a GPU. Set train.device=cpu, or start a rank for each GPU with torchrun."
        )


def train_on(groups: Sequence[Processors], arguments: Sequence[str]) -> None:
    """Run `bertwright ARGUMENTS` once for each group of processors, as the ranks of one training, until they end.

    Signals are forwarded to all ranks; after one, no further rank starts. If a rank fails, the others are ended. The
    `RankError` raised, or `SystemExit` after a signal, has the exit code of that rank. Ranks that do not end after a
    second signal are killed and named, and this process ends.
    """
    ranks: list[subprocess.Popen[bytes]] = []
    received: list[int] = []

    def hand_on(number: int) -> None:
        received.append(number)
        for rank in ranks:
            rank.send_signal(number)  # no effect on a rank that has ended

    try:
        with forward_signals(hand_on):
            port = _free_port()
            for number, group in enumerate(groups):
                if not received:
                    with STARTING, delay_signals():  # a signal must reach the rank that is starting
                        rank = _start(number, len(groups), group, port, arguments)
                        ranks.append(rank)
                        PROGRAMS[rank] = f"rank {number} of {len(groups)} (process {rank.pid} on {group.name})"
            codes = _wait(ranks)
    finally:
        _end(ranks)
        for rank in ranks:
            del PROGRAMS[rank]
    # A rank that is still loading is ended by the signal itself, because it has no handler yet.
    codes = {number: Stopped(-code).exit_code if -code in received else code for number, code in codes.items()}
    if (failed := _first_failed(codes)) is not None:
        raise _failure(failed, codes[failed], groups)
    if stopped := [code for code in codes.values() if code]:
        raise SystemExit(stopped[0])  # rank 0 has reported why
    if len(ranks) < len(groups):
        raise SystemExit(Stopped(received[0]).exit_code)


def _failure(rank: int, code: int, groups: Sequence[Processors]) -> RankError:
    """The error for a failed rank, with its exit code."""
    error = RankError(
        f"rank {rank} of {len(groups)} ({groups[rank].name}) failed with exit code {shell_code(code)}, so the other "
        "ranks were stopped. Correct the cause, then run the same command again: training goes on from its newest "
        "checkpoint."
    )
    error.exit_code = shell_code(code)
    return error


def _start(number: int, world: int, group: Processors, port: int, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start one rank, bound to the processors of its group."""
    environment = {**os.environ, **rank_environment(number, world, port)}
    # One thread per core, not per hardware thread: two of those share the units that multiply.
    environment.setdefault("OMP_NUM_THREADS", str(group.cores))
    command = [*PROGRAM, *arguments]
    with _bound_to(group.processors):
        # In its own process group, so that Ctrl-C reaches only this process, which forwards it once.
        # Nothing on standard output: the result is printed once, by this process.
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, process_group=0)


@contextmanager
def _bound_to(processors: Sequence[int]) -> Iterator[None]:
    """Processes started inside run only on these processors."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _wait(ranks: Sequence[subprocess.Popen[bytes]]) -> dict[int, int]:
    """The exit codes of the ranks that have ended, once all have, or `TO_LEAVE` seconds after one has failed."""
    until = None
    while True:
        codes = {number: code for number, rank in enumerate(ranks) if (code := rank.poll()) is not None}
        if len(codes) == len(ranks) or (until is not None and time.monotonic() > until):
            return codes
        # Ranks monitor one another, and report a lost one themselves.
        if until is None and _first_failed(codes) is not None:
            until = time.monotonic() + TO_LEAVE
        time.sleep(POLL_SECONDS)


def _end(ranks: Sequence[subprocess.Popen[bytes]]) -> None:
    """Terminate the ranks that still run, and kill those that do not exit."""
    for end in (subprocess.Popen.terminate, subprocess.Popen.kill):
        for rank in ranks:
            end(rank)
        until = time.monotonic() + TO_LEAVE
        while any(rank.poll() is None for rank in ranks) and time.monotonic() < until:
            time.sleep(POLL_SECONDS)


def _first_failed(codes: Mapping[int, int]) -> int | None:
    """The rank that failed by itself, or else the first that ended because another was lost; None if none failed."""
    failed = [number for number, code in codes.items() if code not in _IN_ORDER]
    return min(failed, key=lambda number: codes[number] == RankError.exit_code, default=None)


def _free_port() -> int:
    with socket.socket() as probe:
        # For port 0 the system selects a free one, which rank 0 opens a moment later.
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
