"""The command line: one module a group of verbs. Nobody imports this room; it imports them all.

`app` gathers the verbs and turns errors into exit codes; `stages`, `check`, `convert` and `inspect` hold them, and load
what they do when they are asked: `conversion`, `describe`, `batch_text`, `verify`, `compare`. `formatting`
makes lines of text, `terminal` shows them.
"""

from __future__ import annotations


def main() -> None:
    """Entry point. Worker processes import it, and need nothing that it calls."""
    from bertwright.cli.app import main as parse_and_call

    parse_and_call()
