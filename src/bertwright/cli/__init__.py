"""The command line: one module a group of verbs. Nobody imports this room; it imports them all.

`app` gathers the verbs and turns errors into exit codes; `stages`, `check`, `convert` and `inspect` hold them, and load
what they do when they are asked: `conversion`, `describe`, `batch_text`, `verify`, `compare`. `formatting`
makes lines of text, `terminal` shows them.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point. Worker processes import it, and need nothing that it calls."""
    try:
        from bertwright.cli.app import main as parse_and_call
    # Under a small limit (`ulimit -v`) there may be no memory to load what turns errors into sentences.
    except (MemoryError, ImportError) as error:
        from bertwright.core.errors import of_memory

        if (full := of_memory(error)) is None:
            raise
        print(f"bertwright: {full}", file=sys.stderr)
        sys.exit(full.exit_code)
    parse_and_call()
