"""Which modules may import which (including imports inside functions), and which may import torch, rich, pickle."""

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.cli import app

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "bertwright"
DEMO = ROOT / "recipes" / "demo.toml"

MAY_IMPORT = {
    "core": set(),
    "sample": set(),
    "corpus": {"core", "sample"},
    "vocab": {"core", "corpus"},
    "examples": {"core", "corpus", "vocab"},
    "formats": {"core", "corpus", "vocab", "examples"},
    "model": {"core", "examples", "vocab"},
    "page": {"core"},
    "tasks": {"core", "corpus", "examples", "model", "page", "vocab"},
    "optim": {"core"},
    "transfer": {"core"},
    "train": {"core", "examples", "model", "optim", "tasks", "transfer"},
    "evaluate": {"core", "corpus", "model", "vocab", "tasks"},
    "export": {"core", "corpus", "model", "vocab", "examples", "page", "tasks"},
    "report": {"core", "forecast_shapes", "page", "tasks", "vocab"},
    "translate": {"core", "vocab", "explain"},
    "bench": {"core", "examples", "model", "tasks", "optim", "train"},
    "estimate": {"core", "corpus", "examples", "model", "optim", "tasks", "train", "recipe", "shipped"},
    "check": {
        "core",
        "corpus",
        "vocab",
        "examples",
        "export",
        "formats",
        "model",
        "tasks",
        "train",
        "recipe",
        "estimate",
    },
    "init": {"core", "corpus", "vocab", "model", "check", "estimate", "forecast_shapes", "plan", "recipe"},
    "plan": {"core", "model", "train", "estimate", "forecast_shapes", "recipe"},
    "contradictions": {"core", "corpus", "vocab", "examples", "model", "tasks", "optim", "train", "evaluate"},
    "scale": {"core", "sample", "tasks", "train", "vocab", "check", "estimate", "recipe", "recipe_file"},
    "publish": {"core", "launch"},
    "launch": {"core", "check", "estimate", "recipe", "recipe_file", "shipped"},
    "pipeline": {
        "core",
        "corpus",
        "vocab",
        "examples",
        "formats",
        "train",
        "evaluate",
        "export",
        "report",
        "check",
        "estimate",
        "forecast_shapes",
        "page",
        "plan",
        "recipe",
        "tasks",
        "transfer",
    },
    "exams": {"core", "corpus", "examples", "model", "pipeline", "shipped", "tasks", "train", "vocab"},
    "predict": {"core", "examples", "finetune", "model", "pipeline", "tasks"},
    "serve": {"core", "corpus", "export", "model", "page", "pipeline", "predict", "tasks", "train", "shipped", "vocab"},
    "watch": {"core", "page", "vocab"},
    "finetune": {"core", "examples", "model", "pipeline", "recipe", "recipe_file", "tasks", "train", "vocab"},
    "embed": {
        "core",
        "corpus",
        "examples",
        "exams",
        "export",
        "finetune",
        "formats",
        "model",
        "pipeline",
        "shipped",
        "tasks",
        "vocab",
    },
    "trial": {"core", "corpus", "train", "recipe", "estimate", "check", "pipeline"},
    "cli": {
        "embed",
        "page",
        "serve",
        "watch",
        "exams",
        "finetune",
        "predict",
        "model",
        "bench",
        "trial",
        "core",
        "corpus",
        "vocab",
        "examples",
        "formats",
        "train",
        "export",
        "report",
        "check",
        "estimate",
        "forecast_shapes",
        "launch",
        "recipe",
        "recipe_file",
        "pipeline",
        "plan",
        "init",
        "publish",
        "scale",
        "explain",
        "shipped",
        "transfer",
        "translate",
    },
}
MAY_READ = {
    "evaluate": {"train", "corpus"},
    "export": {"train", "evaluate"},
    "report": {"train", "evaluate", "exams"},
    "cli": {"evaluate"},
}
"""Stages whose `shapes.py` a stage, or the command line, may also import: the types of the JSON it reads, its only
knowledge of the writer. So each field is defined once, at the stage that writes it, and the reader needs no other code
of that stage."""
ALSO_READ = {
    "bertwright.corpus.wikis",
    "bertwright.export.certify.shapes",
    "bertwright.export.certify.table",
}
"""Modules that `evaluate`, `export` and `report` also import: names of languages, and the table of a certificate."""
BY_A_NAME_FROM_ELSEWHERE = {
    "__init__.py": "the module of a public name, from the table in the same file",
    "cli/app.py": "the module of a verb, from the table in the same file",
    "pipeline/stage.py": "the function of a stage, from the rows in the same file, which count as imports here",
    "core/plugins.py": "a class of another package that a recipe names",
    "core/shapes.py": "the types of a stage's counts: core knows no stage, and `shapes.py` imports no code",
    "formats/errors.py": "packages of others, with an error that names what to install",
}
"""Files that import what is named by a value, not by a literal, and what that is: the only imports that are not seen
here. `core/shapes.py` closes a circle, core and the types of each stage, which exist without each other until a
manifest is read."""
PUBLIC = SOURCE / "__init__.py"
"""Exports the public names, including those of the pipeline, to users; its `run` shows progress as the verbs do."""
MAIN = SOURCE / "__main__.py"
"""Starts the command line for `python -m bertwright`."""
TORCH = {"embed", "exams", "model", "serve", "tasks", "optim", "train", "evaluate", "export", "bench"}
FOLDERS_WITHOUT_TORCH = {"settings", "memory"}
FILES_WITHOUT_TORCH = {
    "config",
    "shapes",
    "thread_policy",
    "cpu_isa",
    "partition",
    "units",
    "packages",
    "spot_notices",
    "tensor_shapes",
    "by_name",
    "flops",
    "task",
    "section",
    "verdict",
    "title",
    "table",
    "teacher_fit",
}
"""What every verb or a forecast reads, even in packages that use torch."""


@cache
def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@cache
def statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """All import statements of the file, at any depth."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


@cache
def calls(path: Path) -> list[ast.expr]:
    """The first arguments of all calls of `import_module` in the file."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return [node.args[0] for node in nodes if ast.unparse(node.func).endswith("import_module")]


@cache
def named(path: Path) -> set[str]:
    """Modules that the file imports by a literal name, or of which it names a function ("bertwright.x.y:run")."""
    literal = {node.value for node in calls(path) if isinstance(node, ast.Constant)}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return literal | {text.partition(":")[0] for text in texts if re.fullmatch(r"bertwright(\.\w+)+:\w+", text)}


def imported(path: Path) -> Iterator[str]:
    """Dotted names of all modules that the file imports, at any depth, by a statement or by a literal name."""
    yield from named(path)
    for node in statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""


def room(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else ""


def without_torch(path: Path) -> bool:
    return path.stem in FILES_WITHOUT_TORCH or path.parent.name in FOLDERS_WITHOUT_TORCH


def imports_of(name: str) -> Iterator[tuple[Path, str]]:
    """The files of a room, and each module that one imports."""
    return ((path, module) for path in files() if room(path) == name for module in imported(path))


@each_row("name", sorted({room(path) for path in files()}))
def test_a_stage_imports_only_what_the_table_allows(name: str) -> None:
    for path, module in imports_of(name):
        parts = module.split(".")
        if name and parts[0] == "bertwright":
            assert len(parts) > 1, f"{path} imports the package: its public names are for users"
            if name in {"evaluate", "export", "report"} and module in ALSO_READ:
                continue
            shapes = MAY_READ.get(name, set()) if parts[2:] == ["shapes"] else set()
            assert parts[1] in {name, *MAY_IMPORT[name], *shapes}, f"{path} imports {module}"
        if parts[0] == "torch":
            measures = path == SOURCE / "estimate" / "measure.py"
            assert measures or (name in TORCH and not without_torch(path)), f"{path} must not import torch"
        if parts[0] == "rich":
            assert path == SOURCE / "cli" / "terminal.py", f"only cli/terminal.py imports rich, not {path}"
        if parts[0] == "typer":
            assert name == "cli", f"only the command line imports typer, not {path}"
        assert parts[0] not in {"pickle", "shelve", "dill", "joblib"}, f"{path} imports {module}"
        assert parts[0] not in {"tools", "tests", "benchmarks"}, f"{path} imports {module}, which is not installed"


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by dotted name; a package is represented by its `__init__.py`."""
    names = {path: ".".join(("bertwright", *path.relative_to(SOURCE).with_suffix("").parts)) for path in files()}
    return {name.removesuffix(".__init__"): path for path, name in names.items()}


def imports(path: Path, known: Collection[str]) -> set[str]:
    """The modules of the package that the file imports, at any depth, by a statement or by a literal name."""
    found = set(named(path))
    for node in statements(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif node.module:
            within = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in within}
    return found & set(known)


def test_only_these_files_import_what_a_value_names() -> None:
    found = {path for path in files() for name in calls(path) if not isinstance(name, ast.Constant)}
    assert {path.relative_to(SOURCE).as_posix() for path in found} == set(BY_A_NAME_FROM_ELSEWHERE)


def test_no_module_imports_itself_in_a_circle() -> None:
    known = modules()
    graph = {name: imports(path, known) for name, path in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_nobody_below_them_imports_the_pipeline_or_the_command_line() -> None:
    for path in files():
        rooms = {name.split(".")[1] for name in imports(path, modules()) if name != "bertwright"}
        shows = room(path) == "cli" or path in {MAIN, PUBLIC}
        assert "cli" not in rooms or shows, f"{path} imports the command line"
        if (
            room(path) not in {"pipeline", "trial", "embed", "exams", "finetune", "predict", "serve", "cli"}
            and path != PUBLIC
        ):
            assert "pipeline" not in rooms, f"{path} imports the pipeline"


@each_row("path", sorted((SOURCE / "examples").rglob("*.py")))
def test_of_the_examples_only_the_stage_reads_formats(path: Path) -> None:
    if path.name not in {"run.py", "work.py"}:
        assert not any(name.startswith("bertwright.formats") for name in imported(path)), f"{path} is drawn with"


OF_THE_RECIPE = sorted(f"contradictions/{path.name}" for path in (SOURCE / "contradictions").glob("*.py"))


@each_row("name", ["recipe.py", *OF_THE_RECIPE])
def test_the_recipe_knows_only_configs(name: str) -> None:
    mistakes = [each.removesuffix(".py").replace("/", ".") for each in OF_THE_RECIPE]
    others = (
        "explain",
        "recipe_file",
        "optim.by_name",
        "model.bert.network",
        "train.settings.unreachable_settings",
        "vocab.entries",
        "tasks.distillation.teacher_fit",
    )
    beside = {f"bertwright.{module}" for module in (*mistakes, *others)}
    for module in imported(SOURCE / name):
        if module.startswith("bertwright.") and not module.startswith("bertwright.core"):
            assert module.endswith("config") or module in beside, module


@each_row("path", sorted(SOURCE.glob("*/shapes.py")))
def test_shapes_are_types_and_need_no_code_of_a_stage(path: Path) -> None:
    for module in imported(path):
        assert module.rpartition(".")[2] == "shapes" or not module.startswith("bertwright"), f"{path} imports {module}"


def test_no_junk_drawers() -> None:
    for path in files():
        assert not {"utils", "common", "helpers", "manager", "misc"} & {path.stem, path.parent.name}


def test_no_unsafe_calls() -> None:
    for path in files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name not in {"torch.load", "torch.save", "eval", "exec"}, f"{path}: {name}"
                given = {k.arg: ast.unparse(k.value) for k in node.keywords}
                assert "shell" not in given and given.get("allow_pickle", "False") == "False", f"{path}: {name}"


MARKUP = SOURCE / "page" / "markup.py"
"""Builds every page and model card of elements, so that no text of a run becomes markup."""


def test_markup_is_made_of_elements_in_one_file() -> None:
    for path in files():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        if path != MARKUP:
            assert not {"Element", "SubElement", "fromstring", "html.escape"} & calls, path
            assert not [name for name in imported(path) if name.startswith("xml.etree")], path
        if room(path) in {"report", "export", "tasks", "page"}:
            texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
            assert not [text for text in texts if isinstance(text, str) and re.search(r"</?[a-z]+[ >]", text)], path


def loaded_after(statement: str) -> set[str]:
    return {name.partition(".")[0] for name in modules_after(statement)}


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


def test_recipes_load_without_torch_or_the_text_tools() -> None:
    assert not {"torch", "transformers", "tokenizers", "numpy"} & loaded_after("from bertwright import Recipe, run")


def test_only_kernels_import_triton_and_only_their_users_import_kernels() -> None:
    """And those inside functions: a CPU-only installation has no Triton."""
    model = SOURCE / "model"
    kernels, users = model / "kernels", {model / "attention" / "triton.py", model / "fused.py"}
    for path in (path for path in files() if path.parent != kernels):
        assert "triton" not in {name.partition(".")[0] for name in imported(path)}, path
        assert path in users or not any("model.kernels" in name for name in imported(path)), path
    assert "triton" not in loaded_after("import bertwright.model.kernels.needs, bertwright.train.run")


def test_batches_are_drawn_with_numpy_and_pydantic_alone() -> None:
    loaded = loaded_after("import bertwright.examples.planned")
    assert not {"torch", "tokenizers", "transformers", "sentencex", "pycld2", "rich", "typer"} & loaded


def test_training_on_data_made_elsewhere_loads_no_format() -> None:
    code = "import sys, bertwright.train.run, bertwright.examples.imported; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not [name for name in loaded if name.startswith("bertwright.formats")]


def test_preparing_a_corpus_and_knowing_phases_take_no_torch() -> None:
    rooms = (f"bertwright.{name}.run" for name in ("corpus", "vocab", "examples"))
    names = ("bertwright.train.settings.identity", "bertwright.train.settings.forecast", *rooms)
    assert "torch" not in loaded_after(f"import {', '.join(names)}")


def test_what_a_folder_holds_is_told_without_any_stage() -> None:
    code = "import sys, bertwright.pipeline.run; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"torch", "numpy", "tokenizers"} & set(loaded)
    assert not {f"bertwright.{name}.run" for name in MAY_IMPORT if name != "pipeline"} & set(loaded)


def test_a_recipe_is_checked_without_rich_and_what_speaks_to_servers() -> None:
    statement = f"from bertwright.cli.app import app; app(['check', {str(DEMO)!r}], standalone_mode=False)"
    assert not {"rich", "http", "ssl"} & loaded_after(statement)


def test_a_verb_is_loaded_when_it_is_called() -> None:
    statement = f"from bertwright.cli.app import app; app(['check', {str(DEMO)!r}], standalone_mode=False)"
    rooms = {name.split(".")[1] for name in modules_after(statement) if name.startswith("bertwright.")}
    assert not {"translate", "init", "formats", "bench", "launch"} & rooms
    version = modules_after("from bertwright.cli.app import app; app(['--version'], standalone_mode=False)")
    assert not {"bertwright.recipe", "pydantic", "numpy"} & version


def test_each_verb_has_the_function_in_the_table() -> None:
    for entry in app._VERBS.values():
        module, _, function = entry.partition(":")
        assert callable(getattr(import_module(f"bertwright.cli.{module}"), function)), entry


def test_a_run_is_planned_without_torch() -> None:
    statement = f"from bertwright.cli.app import app; app(['plan', {str(DEMO)!r}], standalone_mode=False)"
    assert not {"torch", "tokenizers", "rich", "http", "ssl"} & loaded_after(statement)


def test_only_one_file_reads_which_rank_this_is() -> None:
    readers = [
        path
        for path in files()
        if {'"RANK"', '"WORLD_SIZE"'} & set(re.findall(r"\"[A-Z_]+\"", path.read_text("utf-8")))
    ]
    assert readers == [SOURCE / "core" / "distributed.py"]
