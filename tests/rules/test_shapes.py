"""Every public function that takes or returns an array states its shape in the docstring or in the array's name."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.rows import each_row

SOURCE = Path(__file__).parents[2] / "src" / "bertwright"

ARRAYS = {"NDArray", "ndarray", "ArrayLike", "Tensor"}
"""Library names of array types."""
EITHER = "Array"
"""The batch's type variable, which stands for either array type."""
APART = {"Callable", "Batch"}
"""Types exempt from the rule: callables take their own arrays, and `Batch` documents the shapes that it holds."""

# Special tokens, slices and numeric intervals are also written in brackets.
AXIS = r"[*\w][\w *+×·/-]*"
SHAPE = re.compile(rf"(?<![\w`\]])\[(?!(?:CLS|SEP|MASK|PAD|UNK|any)\])(?=[^\]]*[A-Za-z]){AXIS}(?:, {AXIS})*\]")
IN_WORDS = re.compile(r"\ba scalar\b|\bscalars\b|\bof any shape|\bof the same shape|\bbroadcast")
SUFFIX = re.compile(r"_[A-Z]+$")
"""Suffix of a name that states its shape, such as `x_TH`."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> dict[str, ast.Module]:
    """The public modules of the package by dotted name."""
    paths = (path for path in sorted(SOURCE.rglob("*.py")) if not path.stem.startswith("_") or path.stem == "__init__")
    names = {path: ".".join(("bertwright", *path.relative_to(SOURCE).with_suffix("").parts)) for path in paths}
    return {n.removesuffix(".__init__"): ast.parse(path.read_text(encoding="utf-8")) for path, n in names.items()}


def assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Module-level names and the values assigned to them; a type alias is one of them."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value


def aliases(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """By module, the names that denote arrays or types that hold arrays, including imported ones."""
    names = {module: {*ARRAYS, EITHER} for module in trees}
    imports = {
        module: [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in names]
        for module, tree in trees.items()
    }
    before = -1
    while before != (before := sum(map(len, names.values()))):
        for module, tree in trees.items():
            for name, value in assigned(tree):
                if isinstance(value, ast.Subscript | ast.BinOp | ast.Name) and has_array(value, names[module]):
                    names[module].add(name)
            for node in imports[module]:
                given = (alias for alias in node.names if alias.name in names[str(node.module)])
                names[module] |= {alias.asname or alias.name for alias in given}
    return names


def has_array(annotation: ast.expr | None, names: set[str]) -> bool:
    """Whether an annotation mentions an array, except for arrays in a mapping that are identified by name."""
    match annotation:
        case ast.Name(name):
            return name in names
        case ast.Attribute(_, name):
            return name in ARRAYS
        case ast.Constant(str(text)):
            return has_array(ast.parse(text, mode="eval").body, names)
        case ast.Subscript(ast.Name("dict" | "Mapping"), ast.Tuple([ast.Name("str"), _])):
            return False
        case ast.Subscript(ast.Name(name), _) if name in APART:
            return False
        case ast.Subscript(left, right) | ast.BinOp(left, _, right):
            return has_array(left, names) or has_array(right, names)
        case ast.Tuple(parts) | ast.List(parts):
            return any(has_array(part, names) for part in parts)
    return False


def says_shape(doc: str | None) -> bool:
    return bool(doc and (SHAPE.search(doc) or IN_WORDS.search(doc)))


def docstring_below(body: list[ast.stmt], place: int) -> str | None:
    """The docstring below the field at position `place` of a class body."""
    match body[place + 1 : place + 2]:
        case [ast.Expr(ast.Constant(str(text)))]:
            return text
    return None


def function_says(function: Function, names: set[str]) -> bool:
    """Whether a function has no arrays or states their shapes."""
    given = function.args
    optional = (argument for argument in (given.vararg, given.kwarg) if argument)
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, *optional]
    arrays = [argument.arg for argument in arguments if has_array(argument.annotation, names)]
    if not has_array(function.returns, names) and all(SUFFIX.search(name) for name in arrays):
        return True
    return says_shape(ast.get_docstring(function))


def offenders(body: list[ast.stmt], names: set[str], within: str = "") -> Iterator[str]:
    """The public functions, methods and fields of a module or a class that do not state the shape of an array."""
    for place, node in enumerate(body):
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) if not name.startswith("_"):
                if not function_says(node, names):
                    yield within + name
            case ast.ClassDef(name) if not name.startswith("_"):
                yield from offenders(node.body, names, f"{within}{name}.")
            case ast.AnnAssign(ast.Name(name), annotation) if within and not name.startswith("_"):
                if has_array(annotation, names) and not says_shape(docstring_below(body, place)):
                    yield within + name


def test_every_public_array_has_its_shape_said() -> None:
    trees = modules()
    names = aliases(trees)
    assert "Ids" in names["bertwright.examples.masking"], "no alias of an array is known, so none would be looked at"
    found = [f"{module}:{name}" for module, tree in trees.items() for name in offenders(tree.body, names[module])]
    assert not found, "without shapes:\n" + "\n".join(found)


@each_row(
    ("source", "found"),
    [
        ("def f(x: Tensor) -> int:\n    'Of x.'", ["f"]),
        ("def f(x: Tensor) -> int:\n    'Of x [T].'", []),
        ("def f(x: Tensor) -> int:\n    'Of x, a scalar.'", []),
        ("def f(x: Tensor) -> int:\n    'The ids after [CLS], in [0, 1), of `x[a:b]` and `x[b]`.'", ["f"]),
        ("def f(x_TH: Tensor) -> int:\n    'Of x.'", []),
        ("def f(x_TH: Tensor, y: Tensor) -> int:\n    'Of both.'", ["f"]),
        ("def f(x_TH: Tensor) -> Tensor:\n    'Of x.'", ["f"]),
        ("def f(x_TH: Tensor) -> Tensor:\n    '[T, H] -> [T, H].'", []),
        ("def f(x: np.ndarray | None): ...", ["f"]),
        ("def f(x: list['torch.Tensor']): ...", ["f"]),
        ("def f(x: dict[str, Tensor], g: Callable[[Tensor], int]) -> Batch[Tensor]: ...", []),
        ("def _f(x: Tensor): ...\nclass _C:\n    x: Tensor", []),
        ("class C:\n    def f(self, *x: Tensor): ...", ["C.f"]),
        ("class C:\n    x: Tensor\n    y: Tensor\n    '[B + 1] where.'", ["C.x"]),
        ("Ids = NDArray[np.int64]\nPair = tuple[int, Ids]\ndef f(x: Pair): ...", ["f"]),
        ("Table = dict[str, int]\ndef f(x: Table): ...", []),
    ],
)
def test_what_says_no_shape_is_found(source: str, found: list[str]) -> None:
    tree = ast.parse(source)
    assert list(offenders(tree.body, aliases({"m": tree})["m"])) == found


def test_an_alias_is_known_where_it_is_imported() -> None:
    here, there = ast.parse("Ids = NDArray[np.int64]"), ast.parse("from here import Ids as Rows")
    assert "Rows" in aliases({"here": here, "there": there})["there"]
