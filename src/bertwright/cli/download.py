"""Shared by verbs that only download something published: where to put it, and what to print."""

from __future__ import annotations

from pathlib import Path

from bertwright.cli.formatting import json_line
from bertwright.core.redact import redact_credentials

DOWNLOADS = Path("downloads")
"""Where --download puts files without --out."""


def print_download(path: Path, source: str, as_json: bool) -> None:
    """Print the path of the file; with --json, also its size and where it came from."""
    facts = {"path": str(path), "bytes": path.stat().st_size, "source": redact_credentials(source)}
    print(json_line(facts) if as_json else path)
