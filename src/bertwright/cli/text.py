"""Lines of text for a terminal: facts, tables, training metrics, errors, all safe to print. Numbers: `core.numbers`."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bertwright.core.addresses import redact_credentials
from bertwright.core.numbers import time_left

_COLUMNS = (  # key of a metrics row, title, width, format: 79 characters, for the narrowest terminal
    ("phase", "phase", 5, "{}"),
    ("step", "step", 10, "{:,}"),
    ("loss", "loss", 7, "{:.3f}"),
    ("heldout_loss", "held-out", 9, "{:.3f}"),
    ("heldout_accuracy", "accuracy", 9, "{:.1%}"),
    ("pairs_accuracy", "pairs", 7, "{:.1%}"),
    ("learning_rate", "rate", 8, "{:.1e}"),
    ("tokens_per_second", "tokens/s", 9, "{:,.0f}"),
    ("data_wait_share", "wait", 5, "{:.0%}"),
    ("remaining", "left", 10, "{}"),
)
HEADER = "".join(f"{title:>{width}}" for _, title, width, _ in _COLUMNS)
"""The column titles above `row_line`s."""


_CONTROLS = [*range(0x20), *range(0x7F, 0xA0)]
_REORDERING = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
"""The characters with the Unicode property Bidi_Control."""
_UNSEEN = [0x2028, 0x2029, *range(0xFFF9, 0xFFFC), 0xE0001, *range(0xE0020, 0xE0080), *range(0xD800, 0xE000)]
"""Line and paragraph separators, annotations, tags, and lone surrogates, which cannot be sent to a terminal."""
_SHOWN = {point: chr(point).encode("unicode_escape").decode() for point in (*_CONTROLS, *_REORDERING, *_UNSEEN)}
# Our own messages contain these two, and they control nothing.
del _SHOWN[ord("\n")], _SHOWN[ord("\t")]
_IN_JSON = {
    point: json.dumps(chr(point))[1:-1] for point in (*range(0x7F, 0xA0), *_REORDERING, *_UNSEEN)
}  # JSON contains no other control characters


def visible(text: str) -> str:
    """`text` with every character that could control a terminal or reorder its output escaped: `\\x1b`, `\\u202e`.

    Line feeds and tabs stay.
    """
    return text.translate(_SHOWN)


def json_line(value: Any) -> str:
    """`value` as JSON on one line; what `visible` escapes becomes a JSON escape, so programs read the same value."""
    return json.dumps(value, ensure_ascii=False, default=str).translate(_IN_JSON)


def losses(row: dict[str, Any]) -> list[float | None]:
    """The training loss of the objective's first term in a metrics row and, if it was scored, the held-out loss."""
    # A row follows the order of the objective's terms, so no loss name has to be known here.
    first = next(name for name in row if name.endswith("_loss"))
    return [row[name] for name in (first, f"heldout_{first}") if name in row]


def row_line(row: dict[str, Any]) -> str:
    """A metrics row with held-out scores as a line under `HEADER`; a score that the run lacks is a dash.

    The loss and the accuracy are those of the objective's first term, by which checkpoints are judged.
    """
    first = next(name for name in row if name.endswith("_loss"))
    cells = {**row, "remaining": time_left(row["remaining_seconds"]), "loss": row[first]}
    scores = {"heldout_loss": f"heldout_{first}", "heldout_accuracy": f"heldout_{first.removesuffix('_loss')}_accuracy"}
    scores["pairs_accuracy"] = "heldout_sop_accuracy" if "heldout_sop_accuracy" in row else "heldout_nsp_accuracy"
    cells |= {cell: row[name] for cell, name in scores.items() if name in row}
    return "".join(f"{_cell(cells, key, form):>{width}}" for key, _, width, form in _COLUMNS)


def progress_words(row: dict[str, Any]) -> str:
    """The text of a progress bar, from the last metrics row: time left with its range, loss, accuracy and speed."""
    bounds = [row.get(f"remaining_{end}_seconds") for end in ("low", "high")]
    between = "" if None in bounds else f" ({' to '.join(map(time_left, bounds))})"
    parts = [f"{time_left(row['remaining_seconds'])} left{between}", f"loss {number(losses(row)[0], '{:.3f}')}"]
    first = next(name for name in row if name.endswith("_loss"))
    if (accuracy := row.get(f"{first.removesuffix('_loss')}_accuracy")) is not None:
        parts.append(f"{accuracy:.1%} right")
    parts.append(f"{number(row['tokens_per_second'], '{:,.0f}')} tokens/s")
    # For a tiny network the number would be shown as 0.00.
    if (speed := row.get("tflops_per_second")) is not None and speed >= 0.005:
        parts.append(f"{speed:.3g} TFLOP/s")
    return ", ".join(parts)


def shorten(words: str, room: int) -> str:
    """The text of a progress bar in at most `room` characters: without the range of the time left, and then without its
    last parts, if they do not fit."""
    if len(words) > room:
        words = re.sub(r" left \([^)]*\)", " left", words)
    while len(words) > room and ", " in words:
        words = words.rpartition(", ")[0]
    return words


def _cell(cells: dict[str, Any], key: str, form: str) -> str:
    return number(cells[key], form) if key in cells else "–"


def number(value: float | None, form: str) -> str:
    """A number of a metrics row; None, which stands for a non-finite number, as NaN."""
    return "NaN" if value is None else form.format(value)


def fact_lines(facts: dict[str, Any], width: int = 0) -> Iterator[str]:
    """One line per fact, with the values aligned in a column; dictionaries (numbered if several) and multi-line texts
    go below their name, and so does the value of a long name. With `width`, longer lines go on below their beginning.
    """
    rows = list(_rows(facts, ""))
    margin = max((len(name) for name, _ in rows if len(name) <= _LONGEST_NAME), default=0)
    for name, value in rows:
        if len(name) <= _LONGEST_NAME:
            yield from wrap(f"{name:<{margin}}  ", value, width)
            continue
        yield name
        if value:
            yield from wrap(" " * (len(name) - len(name.lstrip()) + 2), value, width)


def wrap(beginning: str, text: str, width: int) -> Iterator[str]:
    """The text after `beginning`, in lines of at most `width` characters that begin below it; in one if that is 0 or
    leaves no room. Words are not cut."""
    room = width - len(beginning)
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) if room > 20 else [text]
    for number, line in enumerate(lines or [""]):
        yield f"{' ' * len(beginning) if number else beginning}{line}".rstrip()


def terminal_width() -> int:
    """The columns of the terminal that standard output is; 0 if it is a file or a pipe, which is not wrapped."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def colour(text: str, name: str) -> str:
    """The text in a colour (such as "green"), if standard output is a terminal that may have colours (no-color.org)."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if plain:
        return text
    from typer import style  # not in a Python that only trains, whose rows of metrics are also formatted here

    return style(text, fg=name)


_LONGEST_NAME = 26
"""Most characters of a name that has its value beside it; longer ones would leave the values no room."""


def columns(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> Iterator[str]:
    """Lines of a table: its first `words` columns left-aligned, the numbers after them right-aligned."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = zip(row, widths, strict=True)
        yield "  ".join(
            cell.ljust(width) if i < words else cell.rjust(width) for i, (cell, width) in enumerate(cells)
        ).rstrip()


def print_facts(facts: dict[str, Any], as_json: bool) -> None:
    """Print facts for people, or as JSON for programs."""
    if as_json:
        print(json_line(facts))
    else:
        print(*fact_lines(facts, terminal_width()), sep="\n")


def _rows(facts: dict[str, Any], indent: str) -> Iterator[tuple[str, str]]:
    for name, value in facts.items():
        if isinstance(value, dict):
            yield f"{indent}{visible(str(name))}", ""
            yield from _rows(value, indent + "  ")
        elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            for number, each in enumerate(value, start=1):
                yield f"{indent}{visible(str(name))} {number}", ""
                yield from _rows(each, indent + "  ")
        else:
            lines = visible(_text(value)).removesuffix("\n").split("\n")
            yield f"{indent}{visible(str(name))}", lines[0] if len(lines) == 1 else ""
            yield from (("", line) for line in lines if len(lines) > 1)


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def print_download(path: Path, source: str, as_json: bool) -> None:
    """Print the path of the file; with --json, also its size and where it came from."""
    facts = {"path": str(path), "bytes": path.stat().st_size, "source": redact_credentials(source)}
    print(json_line(facts) if as_json else path)


_DESCRIPTION = re.compile(r" It is described as: \".*\"$")
_FOUND = re.compile(r"(?:; (?:got|given:|found:) | \(got ).*")
"""The value that was given, at the end of a sentence."""
_NEXT_SENTENCE = re.compile(r"(?<=[.?!])(?<!\.\.\.) (?![a-z(])")
"""The space between two sentences; one after an abbreviation or a dotted key is none."""
_REMEDY = re.compile(r"(?:give|it is a|leave|lower|pip install|remove|run|set|use|write)\b")
"""How the words after a colon begin if they are a remedy; else they say what is wrong with the key before it."""


def error_hint(message: str) -> str:
    """The hint of a message: a line for each of its lines, by convention the last sentence or, of a single one, the
    last clause, and empty if that is no remedy; "" if no line has one.
    """
    hints = [_hint_of_line(line) for line in message.splitlines()]
    return "\n".join(hints) if any(hints) else ""


def _hint_of_line(line: str) -> str:
    *before, last = _NEXT_SENTENCE.split(_DESCRIPTION.sub("", line))
    if before:
        return last
    _, semicolon, clause = _FOUND.sub("", last).rpartition("; ")
    after_colon = clause.rpartition(": ")[2]
    return clause if semicolon else after_colon if _REMEDY.match(after_colon) else ""
