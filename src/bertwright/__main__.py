"""`python -m bertwright`: the command line, where the program `bertwright` is not on the path."""

from __future__ import annotations

from bertwright.cli import program

if __name__ == "__main__":
    program()
