"""What is wrong in a file of examples: counted by kind, each named with the place of the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Problems:
    """What was wrong in a file, by kind: how often, and where first."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, place: str) -> None:
        """Count a problem at a place of the file; `kind` is a plural, such as "lines with too few columns"."""
        self.counts[kind] += 1
        self.first.setdefault(kind, place)

    def sentences(self) -> Iterator[str]:
        """Yield a sentence on each kind."""
        for kind, count in self.counts.items():
            yield f"{count:,} {kind}, the first in {self.first[kind]}"
