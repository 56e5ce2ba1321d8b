"""Writes docs/api.md, the reference of the public names, from their signatures and docstrings.

python -m tools.api
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import bertwright
from bertwright import plugins

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
MEMBERS = {
    "Batch": ("counts", "map"),
    "Encoder": ("encode", "fill_mask", "classify"),
    "Recipe": ("load", "write"),
    "RunFolder": ("metrics", "scores", "summary", "artifact", "batches"),
    "OptimizerPlugin": ("build",),
    "SchedulePlugin": ("rate",),
    "ObserverPlugin": ("build",),
    "Observer": ("seen", "record", "close"),
    "Task": ("section", "check", "build", "evaluate"),
    "TaskPlugin": ("files", "next_sentence", "network", "build"),
}
"""The methods and properties that users of a class need."""
FIELDS = ("Batch", "Observed", "OptimizerPlugin", "SourceFormat")
"""Classes whose fields are listed."""
HEAD = """# The Python API

Everything here is imported from `bertwright`; `dir(bertwright)` lists it. The other modules may change at any time.
Paths may be text. Errors are those of `bertwright.core.errors`; their texts say what to do. This page is generated
from the docstrings.

```python
from bertwright import Encoder

encoder = Encoder("runs/demo")
vectors = encoder.encode(["A kovász erjed.", "A kenyér sül."])
print(vectors.shape, encoder.fill_mask("A [MASK] lisztből készül."))
```
"""


def text() -> str:
    """The page."""
    names = [name for name in bertwright.__all__ if name not in ("__version__", "SILENT")]
    parts = [HEAD, *(_entry(name, getattr(bertwright, name)) for name in names)]
    parts += ["## SILENT\n\nA log that shows nothing, for `run(..., log=SILENT)`.\n", "# Plugins\n"]
    parts += [f"Imported from `bertwright.plugins`. {_doc(plugins)}\n"]
    parts += [_entry(name, getattr(plugins, name)) for name in plugins.__all__ if name != "Section"]
    return "\n".join(parts)


def _entry(name: str, thing: Any) -> str:
    lines = [f"## {name}", "", *_signature(name, thing), _doc(thing), ""]
    if name in FIELDS:
        lines += [f"- `{field}`: {meaning}" for field, meaning in _fields(thing)] + [""]
    for member in MEMBERS.get(name, ()):
        found = inspect.getattr_static(thing, member)
        found = getattr(found, "__func__", found)
        if isinstance(found, property):
            lines += [f"### {name}.{member}", "", _doc(found), ""]
        else:
            lines += [f"### {name}.{member}", "", *_signature(f"{name}.{member}", found), _doc(found), ""]
    return "\n".join(lines)


def _signature(name: str, thing: Any) -> list[str]:
    if isinstance(thing, type) and name != "Encoder":
        return []
    parameters = inspect.signature(thing).parameters.values()
    shown = [re.sub(r"'|\bbertwright\.[\w.]*\.|pathlib\.", "", str(p)) for p in parameters if p.name != "self"]
    returned = inspect.signature(thing).return_annotation
    arrow = "" if returned in (inspect.Signature.empty, "None") or name == "Encoder" else f" -> {returned}"
    return ["```text", f"{name}({', '.join(shown)}){arrow}".replace("'", "").replace('"', ""), "```", ""]


def _doc(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def _fields(thing: type) -> Iterator[tuple[str, str]]:
    """The fields of a class with the docstrings below them."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(thing))).body
    assert isinstance(tree, ast.ClassDef)
    for field, below in pairwise(tree.body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            yield ast.unparse(field.target), " ".join(str(below.value.value).split())


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
