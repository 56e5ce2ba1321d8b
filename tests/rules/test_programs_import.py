"""Benchmarks and tools are run by hand; checks that what they import from the package exists."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tests.rows import each_row

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted([*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "tools").rglob("*.py")])


def imported(program: Path) -> Iterator[tuple[str, str]]:
    """Module and name of everything that a program imports from the package, at any depth."""
    for node in ast.walk(ast.parse(program.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "bertwright":
            yield from ((node.module or "", alias.name) for alias in node.names)


@each_row("program", PROGRAMS)
def test_what_a_program_imports_is_there(program: Path) -> None:
    for module, name in imported(program):
        found = import_module(module)
        assert hasattr(found, name) or import_module(f"{module}.{name}"), f"{module} has no {name}"
