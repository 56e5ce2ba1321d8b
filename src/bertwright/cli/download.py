"""What a verb does that only fetches something published: where it puts it, and what it says of it."""

from __future__ import annotations

from pathlib import Path

from bertwright.cli.formatting import json_line
from bertwright.core.redact import redact_credentials

DOWNLOADS = Path("downloads")
"""Where --download puts files without --out."""


def print_download(path: Path, source: str, as_json: bool) -> None:
    """Print where the file lies: with --json, its size and where it came from as well."""
    facts = {"path": str(path), "bytes": path.stat().st_size, "source": redact_credentials(source)}
    print(json_line(facts) if as_json else path)
