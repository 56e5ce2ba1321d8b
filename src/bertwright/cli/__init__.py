"""The command line: one module per group of verbs. No other subpackage imports this one; it imports all of them.

`app` has the table of verbs with the module of each, which is imported on use, and turns errors into exit codes.
`text` makes lines of text, `terminal` shows them.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn


def program() -> None:
    """Entry point of a process, which ends after it. Worker processes import this module and need nothing it calls."""
    # First, so that a signal during the imports, which take most of a start, is not lost: those of the handlers alone
    # take longer than Python itself needs to start. A blocked signal waits for them.
    requests = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, requests)
    from bertwright.core.signals import end_on_signals

    try:
        with end_on_signals(process_ends=True):
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            main()
    except RuntimeError as error:  # there may be no memory for the thread that watches for signals
        _leave_for_lack(error)


def main() -> None:
    """Parse `sys.argv`, run the verb, and exit; a notebook or a test may continue after it."""
    # To find plugins of pydantic, of which there are none, it reads the metadata of every installed package: a
    # twentieth of a start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from bertwright.cli.app import main as parse_and_call

        parse_and_call()
    # Under a small limit (`ulimit -v`), there may be no memory for the module that formats errors or the thread that
    # watches for signals; and an environment that only trains may lack the packages of the command line.
    except (MemoryError, ImportError, RuntimeError) as error:
        _leave_for_lack(error)


def _leave_for_lack(error: Exception) -> NoReturn:
    """Exit with a sentence if the error says that memory or a package is missing; else raise it again."""
    from bertwright.core.errors import memory_error, missing_package_error

    if (known := memory_error(error) or missing_package_error(error)) is None:
        raise error
    print(f"bertwright: {known}", file=sys.stderr)
    sys.exit(known.exit_code)
