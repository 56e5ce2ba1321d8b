"""What is asked of a training from outside: to stop, by a signal, or to save, by a notice of a cloud."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bertwright.core.log import Log
from bertwright.core.signals import stop_on_signals
from bertwright.train.spot.config import NoNoticeConfig, SpotNoticeConfig


@dataclass(frozen=True)
class Asked:
    """What is asked of this rank."""

    to_stop: Callable[[], bool]
    """Whether a signal, or a notice by which training is to end, has come: to save and stop."""
    to_save: Callable[[], bool] = lambda: False
    """Whether a notice that the machine is taken away has come since this was called the last time."""


@contextmanager
def asked_from_outside(config: SpotNoticeConfig, log: Log) -> Iterator[Asked]:
    """What signals and the notices of `config` ask, for the length of the block."""
    with stop_on_signals() as signalled:
        if isinstance(config, NoNoticeConfig):
            yield Asked(signalled)
            return
        # Who is not to ask anybody loads nothing that could.
        from bertwright.train.spot.watch import watched_for_notices

        with watched_for_notices(config, log) as notice:
            yield Asked(lambda: signalled() or notice.asks_to_end(), notice.came)
