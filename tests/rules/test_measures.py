"""How long files, functions and the training loop are, and how many parameters functions have, at most."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "bertwright"

LINES = 400
"""Most lines of a file; most files need fewer than 300. A lower limit cuts ideas into fragments with one importer."""
LINE = 120
"""Most characters of a line."""
FUNCTION = 60
"""Most lines of a function, without its docstring, which may say as much as it has to."""
PARAMETERS = 6
OF_KERNELS = ("triton.jit", "torch.library.custom_op", ".register_fake")
"""Decorators of functions that take any number of values: a GPU takes each pointer and number by itself."""
LOOP = 150
"""Most lines of the functions of `train/run.py` that train, from the first phase to the last step."""


@cache
def texts() -> dict[str, str]:
    """The text of each source file, by its path in the package."""
    return {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}


def functions(text: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end, without the docstring."""
    first = function.body[0]
    words = (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(function) is not None else 0
    return (function.end_lineno or 0) - function.lineno + 1 - words


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The number of values that a caller gives: all parameters but `self` and `cls`."""
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def test_a_file_is_one_idea() -> None:
    for path, text in texts().items():
        lines = len(text.splitlines())
        assert lines <= LINES, f"{path} has {lines} lines: give a part of it that has an idea of its own its own file"


def test_lines_of_scripts_are_as_long_as_those_of_python() -> None:
    """ruff keeps those of Python; `serve/inside/onnxruntime_web` is another program's."""
    scripts = [path for kind in ("*.js", "*.cjs", "*.mjs") for path in SOURCE.rglob(kind)]
    own = [path for path in scripts if "onnxruntime_web" not in path.parts]
    assert len(own) > 10
    for path in own:
        longest = max(path.read_text(encoding="utf-8").splitlines(), key=len)
        assert len(longest) <= LINE, f"{path}: {longest.strip()[:60]}... has {len(longest)} characters"


def test_functions_are_short_and_take_few_values() -> None:
    for path, text in texts().items():
        for function in functions(text):
            where, given = f"{path}: {function.name}", parameters(function)
            assert length(function) <= FUNCTION, f"{where} has {length(function)} lines: name a part of it"
            decorators = " ".join(map(ast.unparse, function.decorator_list))
            kernel = path.startswith("model/kernels/") and any(name in decorators for name in OF_KERNELS)
            assert kernel or given <= PARAMETERS, f"{where} has {given} parameters: group some of them"


def test_the_training_loop_is_read_at_once() -> None:
    parts = [each for each in functions(texts()["train/run.py"]) if each.name != "run"]
    assert {"train", "train_phase"} <= {each.name for each in parts}
    assert sum(map(length, parts)) <= LOOP
