"""Writes event files for TensorBoard.

Uses tensorboardX (MIT; needs protobuf but no TensorBoard). Its writer is called directly instead of through its thread:
a full disk silently ends that thread, and training would wait for it forever.
"""

from __future__ import annotations

from datetime import datetime

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.summary import scalar

from bertwright.core.files import make_folder
from bertwright.train.monitor.observers.config import TensorBoardConfig
from bertwright.train.monitor.observers.observer import Observed, Row, numbers_of


class TensorBoard:
    """One event file for the entire training, rewritten at each start; see `Observer`.

    Steps trained again after a crash therefore never appear twice, and rows lost on a full disk are restored.
    """

    seen = 0

    def __init__(self, config: TensorBoardConfig, observed: Observed) -> None:
        folder = make_folder(config.folder or observed.folder / "tensorboard")
        # The key is in the name: other trainings may write into the same folder, and their files must not be removed.
        suffix = f".{observed.key[:16]}"
        self._old = list(folder.glob(f"*.tfevents.*{suffix}*"))
        newest = max((int(path.name.rpartition("-")[2]) for path in self._old), default=-1)
        self._events = EventsWriter(str(folder / "events"), f"{suffix}-{newest + 1}")
        # An open TensorBoard has read the old file, and discards it on this event.
        self._events.write_event(Event(step=0, session_log=SessionLog(status=SessionLog.START)))

    def record(self, row: Row) -> None:
        """As `Observer.record`: scalars named as in the row, over the steps of all phases, at the row's time."""
        written = datetime.fromisoformat(row["time"]).timestamp()
        for name, value in numbers_of(row).items():
            event = Event(step=row["total_steps"], wall_time=written, summary=scalar(name, value))
            self._events.write_event(event)
        self._events.flush()
        # Only now: the new file has everything from the old ones, because earlier rows come first.
        while self._old:
            self._old.pop().unlink(missing_ok=True)

    def close(self, finished: bool) -> None:
        """As `Observer.close`."""
        self._events.close()
