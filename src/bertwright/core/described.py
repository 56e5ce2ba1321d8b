"""The fields of a section with their descriptions: the docstring below each field."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from itertools import pairwise

from pydantic import BaseModel
from pydantic.fields import FieldInfo


@functools.cache
def described(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields by name, each with its `description`.

    It is read from the source on request: pydantic's `use_attribute_docstrings` reads the source of every section at
    every start, which takes a quarter of the time of `check`.
    """
    texts: dict[str, str] = {}
    # A section inherits the docstrings of its base's fields; its own take precedence.
    for parent in reversed(section.__mro__):
        if issubclass(parent, BaseModel) and parent is not BaseModel:
            texts |= _docstrings(parent)
    # Copies: the originals belong to the section class, which everyone shares.
    fields = {name: copy.copy(field) for name, field in section.model_fields.items()}
    for name, field in fields.items():
        field.description = texts.get(name)
    return fields


def _docstrings(section: type[BaseModel]) -> dict[str, str]:
    """The string below each field in the body of the class, by field name; none where the source is not available, as
    for a plugin that is installed without it."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(section)))
    except (OSError, TypeError):
        return {}
    (defined,) = tree.body
    assert isinstance(defined, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(defined.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
