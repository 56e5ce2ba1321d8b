"""`python -m bertwright.cli`, as launchers of ranks start it."""

from __future__ import annotations

from bertwright.cli import main

if __name__ == "__main__":
    main()
