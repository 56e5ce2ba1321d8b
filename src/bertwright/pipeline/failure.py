"""Why a command that was started in a separate process failed."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_ERROR = re.compile(r'\{"error": ')
"""How the line begins that a command prints with `--json` if it fails."""


def why_failed(out: bytes, log: bytes, code: int) -> str:
    """The error that a command with `--json` printed (`out`), else the last line of its `log`, else its exit code;
    for a negative `code`, the signal that ended it."""
    if code < 0:
        killed = "; it probably ran out of memory" if -code == signal.SIGKILL else ""
        return f"ended by {signal.Signals(-code).name}{killed}"
    if errors := list(_errors(out.decode("utf-8", "replace"))):
        # Of several ranks, those that ran were stopped when the first one failed.
        return str(next((error for error in errors if error.get("code") == code), errors[-1])["message"])
    lines = log.decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {code}")


def _errors(printed: str) -> Iterator[dict[str, Any]]:
    """The errors of all ranks, which print at once and may share a line."""
    for begin in _ERROR.finditer(printed):
        with suppress(ValueError):
            error = json.JSONDecoder().raw_decode(printed, begin.start())[0]["error"]
            if isinstance(error, dict) and "message" in error:
                yield error
