"""What is known of one run while it works: its stages, its rows, its log and its guesses, from the files it writes.

Nothing is written, locked or kept open, so a page may come and go at any time. A run that does not exist yet, and a
file that is damaged, give less to show and never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic_core import from_json

from bertwright.core.stage_context import STAGE_NAMES
from bertwright.watch.rows import Rows
from bertwright.watch.tail import Tail

_LARGEST = 2**26
"""Bytes of a JSON file that is read; the manifest of a corpus of thousands of files has some megabytes."""
GUESSES_AT_ONCE = 64
LINES_AT_ONCE = 100


class Run:
    """One run folder. Methods may be called by several threads."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.lock = Lock()
        self.rows = Rows(path / "train" / "metrics.jsonl")
        self._guesses, self._log = Tail(path / "train" / "guesses.jsonl"), Tail(path / "log.jsonl")
        self._files: dict[Path, tuple[tuple[int, int], dict[str, Any]]] = {}

    def state(self) -> dict[str, Any]:
        """What the page shows of every run all the time, and the versions of all else."""
        with self.lock:
            reading = self.rows.read()
            _read_all(self._guesses)
            _read_all(self._log)
            rows, stages = self.rows, self._stages()
            return {
                "name": self.name,
                "state": self._what(stages),
                "stages": stages,
                "rows": {
                    "version": rows.version,
                    "reading": reading,
                    "share": rows.tail.read_bytes / rows.tail.size if rows.tail.size else 1,
                    "damaged": rows.damaged,
                    "keys": rows.keys,
                    "extent": {axis: rows.extent(axis) for axis in ("total_steps", "tokens_seen", "seconds")},
                    "phases": rows.phases(),
                    "first_time": rows.first_time,
                    "last": {name: value for name, value in rows.last.items() if isinstance(value, float | int | str)},
                    "notes": [{"step": note.step, "text": note.text[:1000]} for note in rows.notes[-20:]],
                },
                "guesses": {"version": (self._guesses.generation, len(self._guesses))},
                "log": {"version": (self._log.generation, len(self._log))},
                "scores": self._scores(),
                "made": {
                    name: self._json(self.path / name / "manifest.json").get("fingerprint") for name in STAGE_NAMES
                },
            }

    def guesses(self, begin: int, stride: int) -> dict[str, Any]:
        """Rows of guesses from number `begin`, every `stride`-th, some of them, and how many there are."""
        with self.lock:
            _read_all(self._guesses)
            count = len(self._guesses)
            numbers = range(max(0, begin), count, max(1, stride))[:GUESSES_AT_ONCE]
            rows = [_json_line(self._guesses.line(number)) for number in numbers]
            version = (self._guesses.generation, count)
        return {"version": version, "rows": [_guess(row) for row in rows]}

    def log(self, page: int) -> dict[str, Any]:
        """A page of the log; page 0 has the newest lines, which are the last."""
        with self.lock:
            _read_all(self._log)
            count = len(self._log)
            end = max(0, count - page * LINES_AT_ONCE)
            lines = [_json_line(self._log.line(i)) for i in range(max(0, end - LINES_AT_ONCE), end)]
        shown = [line for line in lines if isinstance(line.get("message"), str)]
        return {"pages": -(-count // LINES_AT_ONCE), "count": count, "lines": shown}

    def manifest(self, stage: str) -> dict[str, Any]:
        """The manifest of a stage, as it is; empty if there is none or it is damaged."""
        with self.lock:
            return self._json(self.path / stage / "manifest.json")

    def _stages(self) -> list[dict[str, Any]]:
        """Each stage: `done`, `begun` or `none`, its seconds, and how many of its folders were moved aside."""
        try:
            entries = [entry.name for entry in self.path.iterdir()]
        except OSError:
            entries = []
        found = []
        for name in STAGE_NAMES:
            manifest = self._json(self.path / name / "manifest.json")
            begun = name in entries or any(e.startswith(f".{name}.") and e.endswith(".draft") for e in entries)
            found.append(
                {
                    "name": name,
                    "state": "done" if manifest else "begun" if begun else "none",
                    "seconds": manifest.get("seconds"),
                    "aside": sum(entry.startswith(f"{name}.") for entry in entries),
                }
            )
        return found

    def _what(self, stages: list[dict[str, Any]]) -> str:
        """In one word, what the run is at: absent, empty, preparing, training, trained, finished."""
        if not self.path.is_dir():
            return "absent"
        states = {stage["name"]: stage["state"] for stage in stages}
        if states["train"] == "done":
            return "finished" if states["export"] == "done" else "trained"
        if self.rows.count or states["train"] == "begun":
            return "training"
        return "preparing" if "done" in states.values() or "begun" in states.values() else "empty"

    def _scores(self) -> dict[str, float | int | str | None]:
        scores = self._json(self.path / "evaluate" / "scores.json")
        return {name: value for name, value in scores.items() if isinstance(value, float | int | str | None)}

    def _json(self, path: Path) -> dict[str, Any]:
        """An object in a file, read once while it does not change; empty if there is none, or no object."""
        try:
            status = path.stat()
            now = (status.st_mtime_ns, status.st_size)
            if (known := self._files.get(path)) and known[0] == now:
                return known[1]
            value = from_json(path.read_bytes(), allow_inf_nan=False) if status.st_size <= _LARGEST else {}
        except (OSError, ValueError):
            return {}
        found = value if isinstance(value, dict) else {}
        self._files[path] = now, found
        return found


def runs_of(paths: list[Path]) -> list[Run]:
    """Runs with names that differ: those of the folders, with as many of the folders above as this needs."""
    paths = [path.absolute() for path in paths]
    for depth in range(1, max(len(path.parts) for path in paths)):
        names = ["/".join(path.parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            break
    return [Run(path, name) for path, name in zip(paths, names, strict=True)]


def _read_all(tail: Tail) -> None:
    while tail.read().lines and tail.read_bytes < tail.size:
        pass


def _json_line(line: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        if isinstance(value := from_json(line, allow_inf_nan=False), dict):
            return value
    return {}


def _guess(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of guesses, of what the page expects; without what is something else."""
    answers = [_answer(each) for each in _list(row.get("answers")) if isinstance(each, Mapping)]
    return {"step": _integer(row.get("total_steps")), "phase": _integer(row.get("phase")), "answers": answers}


def _answer(given: Mapping[str, Any]) -> dict[str, Any]:
    top = [
        [str(best.get("token"))[:200], best["probability"]]
        for best in _list(given.get("top"))
        if isinstance(best, Mapping) and isinstance(best.get("probability"), float | int)
    ]
    gold = given.get("gold")
    return {"text": str(given.get("text", ""))[:2000], "gold": gold if isinstance(gold, str) else None, "top": top[:10]}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _integer(value: Any) -> int:
    return value if isinstance(value, int) else 0
