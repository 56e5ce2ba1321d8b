"""What the processor of this machine can do, as Linux says. Knows no torch."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def processor_flags() -> frozenset[str]:
    """The words of /proc/cpuinfo, names of instruction sets (such as `avx2`) among them; empty where it is absent."""
    try:
        return frozenset(Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split())
    except OSError:
        return frozenset()
