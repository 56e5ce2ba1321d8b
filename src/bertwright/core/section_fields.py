"""The fields of sections: the classes allowed at a recipe key, the field that a key refers to, and the description of
each field, which is the docstring below it.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from collections.abc import Collection, Sequence
from itertools import pairwise
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bertwright.core.plugins import installed_plugins, is_base, is_known, plugin_class


@functools.cache
def described_fields(section: type[BaseModel]) -> dict[str, FieldInfo]:
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


def members(annotation: Any) -> list[Any]:
    """The classes inside unions, tuples, lists, dicts and Annotated types, without the base classes of plugins."""
    return [m for m in _classes(annotation) if not is_base(m)]


def _classes(annotation: Any) -> list[Any]:
    if hasattr(annotation, "__metadata__"):  # Annotated: what follows its type is not a class
        return _classes(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType, tuple, list, dict):
        return [m for a in get_args(annotation) for m in _classes(a)]
    return [annotation]


def is_model(candidate: Any) -> bool:
    """Whether `candidate` is the class of a section, with fields of its own."""
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)


def kinds_with(field: FieldInfo | None, names: Collection[str]) -> list[str]:
    """The kinds allowed at the key of `field` whose sections have all these keys; none if the key has no kinds."""
    sections = [m for m in members(field.annotation) if is_model(m)] if field else []
    return [m.model_fields["kind"].default for m in sections if {"kind", *names} <= m.model_fields.keys()]


def is_kind(field: FieldInfo | None, name: str) -> bool:
    """Whether `name` is a kind allowed at the key of `field`: a built-in one, or one that a package provides."""
    return name in kinds_with(field, ()) or any(is_known(base.group, name) for base in _bases(field))


def plugins_at(field: FieldInfo | None) -> list[str] | None:
    """The installed plugins for the key of `field`, by name; None if it takes no plugins."""
    bases = _bases(field)
    return [name for base in bases for name in installed_plugins(base.group)] if bases else None


def _bases(field: FieldInfo | None) -> list[Any]:
    return [m for m in _classes(field.annotation) if is_base(m)] if field else []


def field_at(model: Any, loc: Sequence[int | str]) -> tuple[list[str], list[str], FieldInfo | None]:
    """The keys of a pydantic error location without union tags, the keys allowed at its end, and its field."""
    keys: list[str] = []
    choices: list[Any] = [model]
    known: list[str] = []
    field: FieldInfo | None = None
    free = False
    for part in loc:
        if isinstance(part, int):  # a list index: the choices stay the same
            keys.append(str(part))
            continue
        models, bases = [c for c in choices if is_model(c)], _bases(field)
        # pydantic adds the kind of a union member to the location; the user wrote it as a value, not as a key.
        tagged = [m for m in models if (f := m.model_fields.get("kind")) is not None and part in get_args(f.annotation)]
        if keys and tagged and part not in models[0].model_fields:
            choices = tagged
            continue
        if keys and any(is_known(base.group, part) for base in bases) and part not in models[0].model_fields:
            choices = [plugin_class(bases[0], part)]
            continue
        known = sorted({name for m in models for name in m.model_fields})
        if free:  # any name is a key there
            keys.append(part)
            free = False
            continue
        if not models:
            continue  # the name of a union member, which the user did not write
        keys.append(part)
        fields = [f for m in models if (f := described_fields(m).get(part))]
        field = fields[0] if fields else None
        choices = [a for f in fields for a in members(f.annotation)]
        free = field is not None and get_origin(field.annotation) is dict
    return keys, known, field
