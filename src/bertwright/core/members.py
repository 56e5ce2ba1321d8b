"""The classes allowed at a recipe key, and the field that a key refers to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bertwright.core.described import described


def members(annotation: Any) -> list[Any]:
    """The classes inside unions, tuples, lists, dicts and Annotated types."""
    if get_origin(annotation) in (Union, UnionType, tuple, list, dict) or hasattr(annotation, "__metadata__"):
        return [m for a in get_args(annotation) for m in members(a)]
    return [annotation]


def is_model(candidate: Any) -> bool:
    """Whether `candidate` is the class of a section, with fields of its own."""
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)


def kinds_with(field: FieldInfo | None, names: Collection[str]) -> list[str]:
    """The kinds allowed at the key of `field` whose sections have all these keys; none if the key has no kinds."""
    sections = [m for m in members(field.annotation) if is_model(m)] if field else []
    return [m.model_fields["kind"].default for m in sections if {"kind", *names} <= m.model_fields.keys()]


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
        models = [c for c in choices if is_model(c)]
        # pydantic adds the kind of a union member to the location; the user wrote it as a value, not as a key.
        tagged = [m for m in models if (f := m.model_fields.get("kind")) is not None and part in get_args(f.annotation)]
        if keys and tagged and part not in models[0].model_fields:
            choices = tagged
            continue
        known = sorted({name for m in models for name in m.model_fields})
        if free:  # any name is a key there
            keys.append(part)
            free = False
            continue
        if not models:
            continue  # the name of a union member, which the user did not write
        keys.append(part)
        fields = [f for m in models if (f := described(m).get(part))]
        field = fields[0] if fields else None
        choices = [a for f in fields for a in members(f.annotation)]
        free = field is not None and get_origin(field.annotation) is dict
    return keys, known, field
