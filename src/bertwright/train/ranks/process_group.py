"""The process group of a training: opened if several ranks train, and closed in order or with a reason reported."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from torch import distributed as dist
from torch.distributed import HashStore  # type: ignore[attr-defined]

from bertwright.core.distributed import rank_and_world
from bertwright.core.errors import Interrupted
from bertwright.train.ranks.ranks import Ranks


@contextmanager
def process_group(start_timeout: float, timeout: float, hang_timeout: float, gpus: bool = False) -> Iterator[Ranks]:
    """Yield the ranks of this job, with the process group open for the duration of the block.

    A rank counts as lost (`RankError`) if it does not connect within `start_timeout` seconds, if it sends no heartbeat
    for `timeout` seconds, or is alive while the others wait for it for `hang_timeout` seconds (0: forever). This
    process can then only exit, with that error's exit code: gloo waits for the lost rank and would block a normal exit.
    `gpus` says whether GPU tensors are sent, too.
    """
    rank, world = rank_and_world()
    if world == 1:
        before = dist.is_initialized()
        try:
            yield Ranks()
        finally:
            # An engine that needs a group opened one of this process alone.
            if dist.is_initialized() and not before:
                dist.destroy_process_group()
        return
    # A single process opens no socket and imports nothing that could.
    from bertwright.train.ranks.pulse import pulse
    from bertwright.train.ranks.rendezvous import our_name, rendezvous
    from bertwright.train.ranks.watchdog import GRACE, Watchdog, failure, interval

    meeting = rendezvous(rank, world, start_timeout)
    watchdog = Watchdog(our_name(rank, world), meeting.peers, timeout, hang_timeout, sees_all=rank == 0)
    ranks = Ranks(rank, world, watchdog)
    try:
        with pulse([peer.connection.fileno() for peer in meeting.peers], interval(timeout)):
            ranks.connect(meeting.store, gpus)
            yield ranks
    except Interrupted:
        ranks.leave()
        raise
    except BaseException as error:
        # All-reduces that torch itself makes, inside an engine, report a lost rank as a transport error.
        lost = watchdog.lost(GRACE) if isinstance(error, RuntimeError) else None
        ranks.leave(failure(our_name(rank, world), lost or error))
        # At exit, gloo's threads would wait for the lost rank, for up to NEVER.
        atexit.register(_end, getattr(lost or error, "exit_code", 1))
        if lost is not None:
            raise lost from error
        raise
    ranks.leave()


def _end(code: int) -> None:
    """Exit immediately: gloo's threads would wait for the others."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def open_group(gpu: bool) -> None:
    """Open a group of this process alone, without a socket, unless a group is open; the caller that opened none closes
    it.

    `gpu`: also for GPU tensors.
    """
    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo", store=HashStore(), rank=0, world_size=1)
