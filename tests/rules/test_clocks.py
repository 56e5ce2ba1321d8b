"""No test measures how long something took: on a busy machine it may take any time.

What a duration would show is shown by an event (which connection ended, what was read), a count (`tests.clock.calls`)
or by a clock that the test drives (`tests.clock.Clock`). A deadline that only ends a wait that would never end is fine,
and is `PATIENCE`: any number that seems to be enough is too few on some day.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time", "monotonic_ns", "perf_counter_ns"}
WAITS = {"wait", "join", "settimeout", "communicate"}
DRAWS = {"pipeline/test_kill.py", "pipeline/test_stopped_anywhere.py"}
"""Files that draw the moment of a kill or a signal from the time that the whole took, and assert nothing about it."""


def durations(text: str) -> Iterator[int]:
    """The lines of a file that subtract a moment from a clock's."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and is_clock(node.left):
            yield node.lineno


def deadlines(text: str) -> Iterator[int]:
    """The lines of a file that wait for a number of seconds of their own, five or more; fewer may be what is tested."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            given = [each.value for each in node.keywords if each.arg in ("timeout", "wait")]
            given += node.args[:1] if name in WAITS else []
            if any(
                isinstance(each, ast.Constant) and type(each.value) in (int, float) and each.value >= 5
                for each in given
            ):
                yield node.lineno


def is_clock(node: ast.expr) -> bool:
    """Whether an expression is the call of a clock of the module `time`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in CLOCKS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "time"
    )


def test_no_test_measures_a_duration() -> None:
    files = {path.relative_to(TESTS).as_posix(): path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py")}
    found = [f"{name}:{line}" for name, text in files.items() if name not in DRAWS for line in durations(text)]
    assert not found, f"{', '.join(found)}: show it by an event, a count or a clock of the test (tests/clock.py)"


def test_a_duration_is_found() -> None:
    text = "begun = time.monotonic()\nwork()\nassert time.monotonic() - begun < 2\nuntil = time.monotonic() + 60\n"
    assert list(durations(text)) == [3]


def test_who_waits_for_what_would_never_end_has_patience() -> None:
    files = {path.relative_to(TESTS).as_posix(): path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py")}
    found = [f"{name}:{line}" for name, text in files.items() for line in deadlines(text)]
    assert not found, f"{', '.join(found)}: wait for PATIENCE (tests/processes.py)"


def test_a_deadline_is_found() -> None:
    text = "thread.join(30)\nrun(timeout=60)\nlost(wait=2)\nready.wait(PATIENCE)\n', '.join(words)\n"
    assert list(deadlines(text)) == [1, 2]
