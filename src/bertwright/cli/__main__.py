"""`python -m bertwright.cli`: the entry point for launchers that start ranks."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    # Python looks for modules in the working folder first, where a file such as random.py is none of ours.
    if not sys.flags.safe_path:
        del sys.path[0]
    from bertwright.cli import program

    program()
