"""A trackio run: in its folder on this machine, or in a Hugging Face Space if one is named."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

import trackio
from trackio.sqlite_storage import SQLiteStorage

from bertwright.train.monitor.observers.config import TrackioConfig
from bertwright.train.monitor.observers.observer import Observed, Row, flat, numbers_of

_REMOTE = ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL", "TRACKIO_BUCKET_ID", "TRACKIO_DATASET_ID", "TRACKIO_WEBHOOK_URL")
"""Environment variables that make trackio send rows elsewhere without the recipe saying so."""


class Trackio:
    """One trackio run for all starts of a training, identified by its key; see `Observer`."""

    def __init__(self, config: TrackioConfig, observed: Observed) -> None:
        name = f"{observed.name}-{observed.key[:8]}"
        with _quiet(), _only_here():
            self._run = trackio.init(
                project=config.project,
                name=name,
                space_id=config.space,
                config=flat(observed.settings),
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
            known = SQLiteStorage.get_max_step_for_run(config.project, name)
        self.seen = known or 0

    def record(self, row: Row) -> None:
        """As `Observer.record`; the step is counted over all phases."""
        values = numbers_of(row)
        values["phase_step"] = values.pop("step")  # trackio reserves the name "step"
        with _quiet():
            self._run.log(values, step=row["total_steps"])

    def close(self, finished: bool) -> None:
        """As `Observer.close`; waits until the rows are stored."""
        with _quiet():
            # Not the run's own method: this one also deregisters the run, which would otherwise be finished again at
            # exit.
            trackio.finish()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Redirect what trackio prints to standard error: standard output is for results."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def _only_here() -> Iterator[None]:
    """Remove environment variables that redirect rows: nothing is sent anywhere that the recipe does not name."""
    taken = {name: os.environ.pop(name) for name in _REMOTE if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(taken)
