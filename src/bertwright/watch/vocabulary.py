"""The entries of a run's vocabulary, counted by script and length, and found by either or by a part of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from bertwright.vocab.entries import CONTINUATION
from bertwright.vocab.report import script

_LARGEST = 2**26
_LONGEST_SHOWN = 20
"""Entries of more characters are counted together."""
AT_ONCE = 100
SPECIAL = "special"


class Vocabulary:
    """The vocabulary in a file; empty if it cannot be read."""

    def __init__(self, path: Path) -> None:
        try:
            text = path.read_bytes()[:_LARGEST].decode("utf-8", "replace")
        except OSError:
            text = ""
        self.entries = text.removesuffix("\n").split("\n") if text else []
        self._kinds = [(_script(entry), _length(entry)) for entry in self.entries]

    def table(self) -> dict[str, Any]:
        """How many entries there are of each script and length, and how many continue a word."""
        counts = Counter(self._kinds)
        scripts = Counter(name for name, _ in self._kinds)
        longest = max((length for _, length in self._kinds), default=0)
        return {
            "entries": len(self.entries),
            "continuations": sum(_continues(entry) for entry in self.entries),
            "lengths": list(range(1, longest + 1)),
            "most": _LONGEST_SHOWN,
            "scripts": [
                {"name": name, "entries": count, "by_length": [counts[name, n] for n in range(1, longest + 1)]}
                for name, count in scripts.most_common()
            ],
        }

    def page(self, script: str, length: int, find: str, page: int) -> dict[str, Any]:
        """A page of the entries of a script ("": any), a length (0: any) and with a text in them, with their ids."""
        found = [
            [number, entry[:200]]
            for number, (entry, kind) in enumerate(zip(self.entries, self._kinds, strict=True))
            if (not script or kind[0] == script) and (not length or kind[1] == length) and find in entry
        ]
        return {"count": len(found), "pages": -(-len(found) // AT_ONCE), "items": found[page * AT_ONCE :][:AT_ONCE]}


def _continues(entry: str) -> bool:
    return entry.startswith(CONTINUATION) and len(entry) > len(CONTINUATION)


def _text(entry: str) -> str:
    return entry.removeprefix(CONTINUATION) if _continues(entry) else entry


def _script(entry: str) -> str:
    return SPECIAL if entry.startswith("[") and len(entry) > 1 else script(_text(entry))


def _length(entry: str) -> int:
    return min(len(_text(entry)), _LONGEST_SHOWN)
