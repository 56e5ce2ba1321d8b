"""`python -m bertwright.cli`: the entry point for launchers that start ranks."""

from __future__ import annotations

from bertwright.cli import program

if __name__ == "__main__":
    program()
