"""External requests to a training: to stop (a signal) or to save (a preemption notice from a cloud)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bertwright.core.log import Log
from bertwright.core.signals import stop_on_signals
from bertwright.train.machine.config import NoNoticeConfig, SpotNoticeConfig


@dataclass(frozen=True)
class StopRequests:
    """External requests to this rank."""

    signalled: Callable[[], bool]
    """Whether a signal to save and stop has arrived."""
    to_save: Callable[[], bool] = lambda: False
    """Whether a notice that the machine will be taken away has arrived since the last call."""
    to_end: Callable[[], bool] = lambda: False
    """Whether a notice has arrived after which training has to save and stop."""

    def to_stop(self) -> bool:
        """Whether a signal or a notice requires training to save and stop."""
        return self.signalled() or self.to_end()


@contextmanager
def watch_stop_requests(config: SpotNoticeConfig, log: Log) -> Iterator[StopRequests]:
    """Yield the requests made by signals and by the notices that `config` selects, for the duration of the block."""
    with stop_on_signals() as signalled:
        if isinstance(config, NoNoticeConfig):
            yield StopRequests(signalled)
            return
        # Without a notice source, no module that could send requests is imported.
        from bertwright.train.machine.spot_notices import watch_for_notices

        with watch_for_notices(config, log) as notice:
            yield StopRequests(signalled, notice.is_new, notice.requires_end)
