"""Facts and rows of training as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

_COLUMNS = (  # key of a metrics row, title, width, format
    ("phase", "phase", 6, "{}"),
    ("step", "step", 15, "{}"),
    ("mlm_loss", "loss", 8, "{:.3f}"),
    ("heldout_mlm_loss", "held-out", 10, "{:.3f}"),
    ("heldout_mlm_accuracy", "accuracy", 10, "{:.1%}"),
    ("heldout_nsp_accuracy", "pairs", 8, "{:.1%}"),
    ("learning_rate", "rate", 10, "{:.1e}"),
    ("tokens_per_second", "tokens/s", 10, "{:,.0f}"),
    ("data_wait_share", "waiting", 9, "{:.1%}"),
    ("remaining", "phase left", 12, "{}"),
)
HEADER = "".join(f"{title:>{width}}" for _, title, width, _ in _COLUMNS)
"""The titles over `row_line`s."""


def row_line(row: dict[str, Any]) -> str:
    """A metrics row with held-out scores as a line under `HEADER`; a score that the run has not is a dash."""
    cells = {
        **row,
        "step": f"{row['step']:,}/{row['steps']:,}",
        "remaining": timedelta(seconds=round(row["remaining_seconds"])),
    }
    shown = ((form.format(cells[key]) if cells.get(key) is not None else "–", w) for key, _, w, form in _COLUMNS)
    return "".join(f"{text:>{width}}" for text, width in shown)


def fact_lines(facts: dict[str, Any]) -> Iterator[str]:
    """A line for each fact, values in one column; dictionaries, numbered where they are several, and texts of several
    lines stand below their name."""
    rows = list(_rows(facts, ""))
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        yield f"{name:<{width}}  {value}".rstrip()


def _rows(facts: dict[str, Any], indent: str) -> Iterator[tuple[str, str]]:
    for name, value in facts.items():
        if isinstance(value, dict):
            yield f"{indent}{name}", ""
            yield from _rows(value, indent + "  ")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, each in enumerate(value, start=1):
                yield f"{indent}{name} {number}", ""
                yield from _rows(each, indent + "  ")
        else:
            lines = _text(value).splitlines()
            yield f"{indent}{name}", lines[0] if len(lines) == 1 else ""
            yield from (("", line) for line in lines if len(lines) > 1)


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
