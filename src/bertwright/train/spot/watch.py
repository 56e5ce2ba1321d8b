"""A thread, on the first rank of each machine, that checks whether the machine will be taken away."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from bertwright.core.distributed import rank_here
from bertwright.core.log import Log
from bertwright.train.spot.notices import Config, Notices, notices, seconds_left

BEGINS = 120.0
"""Seconds that Azure may take to start responding to a machine."""


class Notice:
    """Notices passed from the thread to training."""

    def __init__(self, ends: bool = False) -> None:
        self._ends, self._new, self._ever = ends, threading.Event(), threading.Event()

    def came(self) -> bool:
        """Whether a notice has arrived since the last call."""
        if not self._new.is_set():
            return False
        self._new.clear()
        return True

    def asks_to_end(self) -> bool:
        """Whether a notice has arrived and training is configured to end on it."""
        return self._ends and self._ever.is_set()

    def come(self) -> None:
        """Record that a notice has arrived."""
        self._ever.set()
        self._new.set()


@contextmanager
def watched_for_notices(config: Config, log: Log) -> Iterator[Notice]:
    """Yield the notices that arrive during the block.

    Each notice, its withdrawal, and the lack of a response for longer than `BEGINS` are logged; failed queries are
    repeated.
    """
    if rank_here() != 0:
        yield Notice()
        return
    asking = _Asking(config, log)
    threading.Thread(target=asking.run, name="spot notice", daemon=True).start()
    try:
        yield asking.notice
    finally:
        # Not joined: a request without a response may be in progress.
        asking.over.set()


class _Asking:
    """The queries of one start."""

    def __init__(self, config: Config, log: Log) -> None:
        self._config, self._log = config, log
        self._standing: Notices = {}
        self._unanswered, self._answered = False, time.monotonic()
        self.notice, self.over = Notice(config.ends), threading.Event()

    def run(self) -> None:
        """Query until the block ends."""
        while not self.over.is_set():
            try:
                self._take(notices(self._config))
                self._say_answered()
            # Errors of the metadata service must not end this thread.
            except (OSError, ValueError, http.client.HTTPException) as error:
                self._say_once(error)
            self.over.wait(self._config.every)

    def _take(self, now: Notices) -> None:
        for name in now.keys() - self._standing.keys():
            self._log.say(
                f"train: {self._config.kind} reclaims this machine{_when(now[name])} ({name}): a checkpoint is saved "
                f"after this step, and training {'ends' if self._config.ends else 'continues as long as possible'}"
            )
            self.notice.come()
        for name in self._standing.keys() - now.keys():
            self._log.say(f"train: {self._config.kind} no longer announces that it reclaims this machine ({name})")
        self._standing = now

    def _say_answered(self) -> None:
        self._answered = time.monotonic()
        if self._unanswered:
            self._unanswered = False
            self._log.say(
                f"train: {self._config.address} now answers whether {self._config.kind} reclaims this machine"
            )

    def _say_once(self, error: Exception) -> None:
        if not self._unanswered and time.monotonic() - self._answered > BEGINS:
            self._unanswered = True
            self._log.say(
                f"warning: train.spot_notice {self._config.kind}: {self._config.address} does not answer whether this "
                f"machine is reclaimed ({error}). Training goes on, and the address is asked again every "
                f"{self._config.every:g} s; on a machine outside this cloud, leave the key out."
            )


def _when(moment: datetime | None) -> str:
    return "" if moment is None else f" in {max(0.0, seconds_left(moment)):.0f} s"
