"""Detects lost ranks: a thread of every rank sends a heartbeat every half second, whatever else the rank does; while C
code lets no thread of Python run, the process of `pulse` still does.

gloo reports a rank that is stopped, or behind a cut link, only after a timeout that would have to exceed the longest
scoring; and for a killed rank it reports only an address. So every rank keeps a connection to rank 0. A rank is lost if
its connection ends without an exit message, is silent for `train.timeout`, or is alive while the others wait for it for
`train.hang_timeout` without having reported that it is busy. If no rank gets on with its GPU for that long, a GPU
hangs. Rank 0 passes its findings on to the others. Time is counted in a rank's own heartbeats: a machine that was
suspended has not missed any of its peers.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence

from bertwright.core.errors import RankError, memory_error
from bertwright.train.ranks.rendezvous import RankConnection, State

GRACE = 5.0
"""Seconds in which a rank whose connection broke may learn from the others which rank is lost."""
IN_ORDER = 0.75
"""Seconds in which the main thread may raise the error, before its process is ended. It checks more often while it
waits in an all-reduce of `Ranks` (`ranks.LOOK`), but not while it waits inside a library."""
BETWEEN = 0.5
"""Maximum seconds between two heartbeats."""
_DEAD = "it was killed or its machine went down"
_CUT_OFF = "it is stopped, its machine is down, or the network to it is cut"
_HUNG = "Check whether its disk, network and driver respond; if it was only slow, raise the key."
_STUCK = (
    "a GPU, or a link between two of them, hangs: no rank has got on with its GPU {}. Look for messages of the driver "
    "on each machine (dmesg, nvidia-smi); if a forward pass takes that long, raise the key."
)
_AGAIN = "Run the same command again: training goes on from its newest checkpoint."


class Watchdog:
    """Watches `peers`: on rank 0 all other ranks, on all others rank 0.

    If the main thread does not raise the error (`check`) within `IN_ORDER` seconds, the watchdog thread ends the
    process, unless it is inside `saving`: the main thread may be computing for minutes, or waiting in a library
    forever.
    """

    def __init__(
        self, name: str, peers: Sequence[RankConnection], timeout: float, hang_timeout: float, sees_all: bool
    ) -> None:
        """`name` is what others call this rank; timeouts are in seconds, and a `hang_timeout` of 0 means forever;
        `sees_all`: whether `peers` are all other ranks."""
        self._name, self._peers, self._sees_all = name, list(peers), sees_all
        self._timeout, self._hang_timeout = timeout, hang_timeout or float("inf")
        self._furthest, self._since = (0, 0, False), 0
        """Largest number of collectives begun by any rank, forward passes begun by all, whether all ranks only wait for
        their devices; and the heartbeat since which none of these has changed."""
        self.sums = 0
        """Number of collectives (all-reduces and broadcasts) that this rank has begun; counted by the code that begins
        them."""
        self.passes = 0
        """Number of forward passes that this rank has begun in training; counted likewise."""
        self._state: State = "alive"
        self._lost = ""
        self._found, self._raised = threading.Event(), threading.Event()
        self._closing = False
        self._saving = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise `RankError` if a rank is lost, or has exited while this one waits for it."""
        for peer in self._peers:
            if peer.left:
                self._lose(f"{peer.name} has ended before the others. {_AGAIN}")
        if error := self.lost():
            raise error

    def lost(self, wait: float = 0.0) -> RankError | None:
        """Return the error about a lost rank, if one is found within `wait` seconds; the caller has to raise it."""
        if not self._found.wait(wait):
            return None
        self._raised.set()
        return RankError(self._lost)

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """Complete the block even if a rank is lost meanwhile."""
        with self._saving:
            yield

    @contextlib.contextmanager
    def doing(self, state: State) -> Iterator[None]:
        """Tell the others what this rank does in the block; while it is `busy`, no rank counts as hanging."""
        self._state = state
        try:
            yield
        finally:
            self._state = "alive"

    def close(self, failure: str = "") -> None:
        """Announce the exit, or why this rank fails; stop watching, and wait a little for the others to receive it."""
        self._closing = True
        for peer in self._peers:
            peer.tell(f"lost {' '.join(failure.split())}" if failure else "end")
            with contextlib.suppress(OSError):
                peer.connection.shutdown(socket.SHUT_WR)
        self._thread.join(2 * BETWEEN)

    def _watch(self) -> None:
        between = min(interval(self._timeout), self._hang_timeout / 4)
        ticks, found_at = 0, 0.0
        with selectors.DefaultSelector() as selector:
            for peer in self._peers:
                selector.register(peer.connection, selectors.EVENT_READ, peer)
            while not self._closing:
                ticks += 1
                for peer in self._peers:
                    peer.tell(f"{self._state} {self.sums} {self.passes}")
                # Once a rank is lost the others end within two seconds.
                self._listen(selector, min(between, IN_ORDER / 4) if found_at else between, ticks)
                self._miss(ticks, between)
                self._find_hung(ticks, between)
                if self._found.is_set():
                    found_at = found_at or time.monotonic()
                    # The main thread exits cleanly; the process is ended from here only if the main thread does not get
                    # to it.
                    if time.monotonic() - found_at > IN_ORDER and not self._raised.is_set():
                        self._end_process()
            self._listen(selector, between, ticks)
        for peer in self._peers:
            peer.connection.close()

    def _listen(self, selector: selectors.BaseSelector, seconds: float, now: int) -> None:
        """Read what arrives within `seconds`; after the exit message, at most until the others close."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and (selector.get_map() or not self._closing):
            for key, _ in selector.select(left):
                peer: RankConnection = key.data
                lines = peer.lines()
                peer.heard = now
                for line in lines or []:
                    self._read(peer, line)
                if lines is None:
                    selector.unregister(peer.connection)
                    if not peer.left:
                        self._lose(f"{peer.name} is lost: its connection ended, so {_DEAD}. {_AGAIN}")
                    peer.left = True

    def _miss(self, now: int, between: float) -> None:
        for peer in self._peers:
            if (now - peer.heard) * between >= self._timeout and not peer.left:
                silent = f"it sent nothing for {self._timeout:g} s (train.timeout), so {_CUT_OFF}"
                self._lose(f"{peer.name} is lost: {silent}. {_AGAIN}")

    def _find_hung(self, now: int, between: float) -> None:
        """Report ranks that others have waited for longer than `train.hang_timeout` as lost, or that a GPU hangs."""
        begun = {self._name: self.sums} | {peer.name: peer.sums for peer in self._peers}
        states = {self._state} | {peer.state for peer in self._peers}
        # With GPUs, hosts begin collectives before the devices get to them: if a device hangs, no host is behind.
        on_devices, passes = self._sees_all and states == {"device"}, self.passes + sum(p.passes for p in self._peers)
        furthest = max(begun.values()), passes, on_devices
        # While one rank is busy no time counts: the others would wait for it in any case.
        if "busy" in states or furthest != self._furthest:
            self._furthest, self._since = furthest, now
        # No rank is behind while all compute, however long a step takes.
        behind = [name for name, sums in begun.items() if sums < furthest[0]]
        if (now - self._since) * between > self._hang_timeout and (behind or on_devices):
            waited = f"for {self._hang_timeout:g} s (train.hang_timeout)"
            hung = f"{', '.join(behind)} runs but hangs: the others have waited {waited}. {_HUNG}"
            self._lose(f"{hung if behind else _STUCK.format(waited)} {_AGAIN}")

    def _read(self, peer: RankConnection, line: str) -> None:
        if line == "end":
            peer.left = True
        elif line.startswith("lost "):
            peer.left = True
            self._lose(line.removeprefix("lost "))
        else:
            peer.heartbeat(line)

    def _lose(self, sentence: str) -> None:
        if not self._found.is_set() and not self._closing:
            self._lost = sentence
            self._found.set()
            for peer in self._peers:
                # The others learn of it from rank 0: they have no connection to the lost rank themselves.
                peer.tell(f"lost {sentence}")

    def _end_process(self) -> None:
        with self._saving:
            sys.stderr.write(f"bertwright: {self._lost}\n")
            sys.stderr.flush()
            os._exit(RankError.exit_code)


def interval(timeout: float) -> float:
    """Return the seconds between two heartbeats: at least four per timeout, so that a late one does not make a rank
    count as lost."""
    return min(BETWEEN, timeout / 4)


def failure(name: str, error: BaseException) -> str:
    """Return what a failing rank reports to the others; a lack of memory or threads is named, because libraries tell of
    it in words of their own."""
    if isinstance(error, Exception) and (lack := memory_error(error)):
        return f"{name} has failed: {lack}"
    return str(error) if isinstance(error, RankError) else f"{name} has failed and prints the reason itself. {_AGAIN}"
