"""The command line: one module per group of verbs. No other subpackage imports this one; it imports all of them.

`app` has the table of verbs with the module of each, which is imported on use, and turns errors into exit codes.
`formatting` makes lines of text, `terminal` shows them.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point. Worker processes import this module but need nothing that it calls."""
    # For plugins of pydantic the metadata of every installed package is read: a twentieth of a start, for none at all.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from bertwright.cli.app import main as parse_and_call
    # Under a small limit (`ulimit -v`), there may be no memory to load the module that formats errors; and an
    # environment that only trains may lack the packages of the command line.
    except (MemoryError, ImportError) as error:
        from bertwright.core.errors import of_memory, of_missing

        if (told := of_memory(error) or of_missing(error)) is None:
            raise
        print(f"bertwright: {told}", file=sys.stderr)
        sys.exit(told.exit_code)
    parse_and_call()
