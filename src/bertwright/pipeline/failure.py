"""Why a command that was started in a separate process failed."""

from __future__ import annotations

import json
import signal
from contextlib import suppress


def why_failed(out: bytes, log: bytes, code: int) -> str:
    """The error that a command with `--json` printed (`out`), else the last line of its `log`, else its exit code;
    for a negative `code`, the signal that ended it."""
    if code < 0:
        killed = "; it probably ran out of memory" if -code == signal.SIGKILL else ""
        return f"ended by {signal.Signals(-code).name}{killed}"
    with suppress(ValueError, KeyError, IndexError, TypeError):
        return str(json.loads(out.splitlines()[-1])["error"]["message"])
    lines = log.decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {code}")
