"""The sentences that a run says, also as JSON lines in its folder, with the time; only for viewing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bertwright.core.errors import BertwrightError
from bertwright.core.log import Log
from bertwright.core.secrets import hide_secrets

FILE = "log.jsonl"


class RunLog:
    """A log that passes on what it is told and appends each sentence to a file.

    Several processes may append to the same file. One that cannot be written loses sentences, not the run.
    """

    def __init__(self, log: Log, path: Path) -> None:
        self._log, self._path = log, path
        self.progress, self.record = log.progress, log.record

    def say(self, message: str) -> None:
        """As `Log.say`."""
        self._log.say(message)
        self.note(message)

    def note(self, message: str, **further: Any) -> None:
        """Write a line without showing it."""
        line = {"time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "message": hide_secrets(message), **further}
        with suppress(OSError), self._path.open("ab+") as file:
            # After half a line, which a killed process may leave, a new one begins.
            torn = file.seek(0, os.SEEK_END) and file.seek(-1, os.SEEK_END) is not None and file.read(1) != b"\n"
            file.write((b"\n" if torn else b"") + json.dumps(line, ensure_ascii=False).encode() + b"\n")


@contextmanager
def write_log(log: Log, folder: Path) -> Iterator[Log]:
    """Yield a log that also writes to the run in `folder`; an error that ends the block is its last line."""
    written = RunLog(log, folder / FILE)
    try:
        yield written
    except BertwrightError as error:
        written.note(str(error), error=True)
        raise
