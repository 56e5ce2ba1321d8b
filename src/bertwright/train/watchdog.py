"""Which rank is lost? A thread of every rank says each second that the rank lives, whatever else the rank does.

gloo tells nothing of a rank that is stopped, or behind a link that is cut, before a time-out that would have to be
longer than the longest scoring; and of a killed one an address. So every rank keeps a connection to the first one. A
rank is lost when its connection ends without a farewell, is silent for `train.timeout`, or lives while the others wait
for it for `train.hang_timeout`, where it does not say that it is busy; the first rank passes on to the others what it
finds. Seconds are counted in signs of life of one's own: a machine that slept as a whole has missed nobody.
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

from bertwright.core.errors import RankError
from bertwright.train.peer import Peer

GRACE = 5.0
"""Seconds in which a rank whose connection broke may learn from the others which one is lost."""
IN_ORDER = 0.75
"""Seconds in which the main thread may raise what is found, before its process is ended; it looks more often while it
waits for a sum of ours (`ranks.LOOK`), and not while it waits in a library."""
BETWEEN = 1.0
"""Most seconds between two signs of life."""
_DEAD = "it was killed or its machine went down"
_CUT_OFF = "it is stopped, its machine is down, or the network to it is cut"
_HUNG = "Look whether its disk, network and driver answer; where it only took long, raise the key."
_AGAIN = "Run the same command again: training goes on from its newest checkpoint."


class Watchdog:
    """Watches over `peers`: all other ranks on the first one, and the first one on all others.

    A rank whose main thread does not raise what is found (`check`) within `IN_ORDER` seconds is ended from here, when
    it is not inside `saving`: it may be computing for minutes, or wait in the library for ever.
    """

    def __init__(self, name: str, peers: Sequence[Peer], timeout: float, hang_timeout: float) -> None:
        """`name` is what others call this rank; time-outs are in seconds, and 0 for the second means for ever."""
        self._name, self._peers = name, list(peers)
        self._timeout, self._hang_timeout = timeout, hang_timeout or float("inf")
        self._furthest = (0, 0)
        """Most sums that a rank has begun, and since when, in signs of life."""
        self.sums = 0
        """Sums over the ranks that this one has begun; counted by who begins them."""
        self._busy = False
        self._lost = ""
        self._found, self._raised = threading.Event(), threading.Event()
        self._closing = False
        self._saving = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise `RankError` when a rank is lost, or has left while this one waits for it."""
        for peer in self._peers:
            if peer.left:
                self._lose(f"{peer.name} has ended before the others. {_AGAIN}")
        if error := self.lost():
            raise error

    def lost(self, wait: float = 0.0) -> RankError | None:
        """The error about a lost rank, if one is found within `wait` seconds; to be raised."""
        if not self._found.wait(wait):
            return None
        self._raised.set()
        return RankError(self._lost)

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """What is done inside is finished, also when a rank is lost meanwhile."""
        with self._saving:
            yield

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """The others wait for what is done inside, however long it takes, and do not count it as hanging."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def close(self, failure: str = "") -> None:
        """Say farewell, or why this rank fails, watch no longer, and wait a little for the others to hear it."""
        self._closing = True
        for peer in self._peers:
            peer.tell(f"lost {' '.join(failure.split())}" if failure else "end")
            with contextlib.suppress(OSError):
                peer.connection.shutdown(socket.SHUT_WR)
        self._thread.join(2 * BETWEEN)

    def _watch(self) -> None:
        # At least four signs in a time-out, so that one that is late loses nobody.
        between = min(BETWEEN, self._timeout / 4, self._hang_timeout / 4)
        ticks, found_at = 0, 0.0
        with selectors.DefaultSelector() as selector:
            for peer in self._peers:
                selector.register(peer.connection, selectors.EVENT_READ, peer)
            while not self._closing:
                ticks += 1
                for peer in self._peers:
                    peer.tell(f"busy {self.sums}" if self._busy else str(self.sums))
                # Once a rank is lost the others end within two seconds.
                self._listen(selector, min(between, IN_ORDER / 4) if found_at else between, ticks)
                self._miss(ticks, between)
                self._find_hung(ticks, between)
                if self._found.is_set():
                    found_at = found_at or time.monotonic()
                    # The main thread ends in order; only one that does not get to it is ended from here.
                    if time.monotonic() - found_at > IN_ORDER and not self._raised.is_set():
                        self._end_process()
            self._listen(selector, between, ticks)
        for peer in self._peers:
            peer.connection.close()

    def _listen(self, selector: selectors.BaseSelector, seconds: float, now: int) -> None:
        """Read what comes within so many seconds, or after the farewell until the others close."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and (selector.get_map() or not self._closing):
            for key, _ in selector.select(left):
                peer: Peer = key.data
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
            if (now - peer.heard) * between > self._timeout and not peer.left:
                silent = f"nothing was heard of it for {self._timeout:g} s (train.timeout), so {_CUT_OFF}"
                self._lose(f"{peer.name} is lost: {silent}. {_AGAIN}")

    def _find_hung(self, now: int, between: float) -> None:
        """Lose the ranks that are behind one that has waited for them for `train.hang_timeout`."""
        begun = {self._name: self.sums} | {peer.name: peer.sums for peer in self._peers}
        furthest, since = self._furthest
        # While one is busy nobody's time counts: the others would wait for that one in any case.
        busy = self._busy or any(peer.busy for peer in self._peers)
        if busy or max(begun.values()) > furthest:
            self._furthest = max(begun.values()), now
            return
        # None is behind where all compute, however long a step takes.
        behind = [name for name, sums in begun.items() if sums < furthest]
        if behind and (now - since) * between > self._hang_timeout:
            waited = f"the others have waited for {self._hang_timeout:g} s (train.hang_timeout)"
            self._lose(f"{', '.join(behind)} lives but hangs: {waited}. {_HUNG} {_AGAIN}")

    def _read(self, peer: Peer, line: str) -> None:
        if (number := line.removeprefix("busy ")).isdecimal():
            peer.sums, peer.busy = int(number), number != line
        elif line == "end":
            peer.left = True
        elif line.startswith("lost "):
            peer.left = True
            self._lose(line.removeprefix("lost "))

    def _lose(self, sentence: str) -> None:
        if not self._found.is_set() and not self._closing:
            self._lost = sentence
            self._found.set()
            for peer in self._peers:
                # The others learn it from the first rank: they have no connection to the lost one themselves.
                peer.tell(f"lost {sentence}")

    def _end_process(self) -> None:
        with self._saving:
            sys.stderr.write(f"bertwright: {self._lost}\n")
            sys.stderr.flush()
            os._exit(RankError.exit_code)


def failure(name: str, error: BaseException) -> str:
    """What a rank that fails says to the others."""
    return str(error) if isinstance(error, RankError) else f"{name} has failed, and says why itself. {_AGAIN}"
