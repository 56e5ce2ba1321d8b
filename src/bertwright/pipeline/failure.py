"""Why a command that was started here as a process of its own has failed."""

from __future__ import annotations

import json
import signal
from contextlib import suppress


def why_failed(out: bytes, log: bytes, code: int) -> str:
    """The error that a command with `--json` printed (`out`), else the last line of its `log`; the exit code, or below
    0 the signal, where it left nothing."""
    if code < 0:
        killed = "; probably there was no memory left" if -code == signal.SIGKILL else ""
        return f"ended by {signal.Signals(-code).name}{killed}"
    with suppress(ValueError, KeyError, IndexError, TypeError):
        return str(json.loads(out.splitlines()[-1])["error"]["message"])
    lines = log.decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {code}")
