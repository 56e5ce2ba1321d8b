"""Sentences about sections of several kinds, such as optimizers: a key of another kind, and a kind that is missing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bertwright.core.members import field_at, kinds_with


def of_another_kind(model: type[BaseModel], loc: Sequence[int | str], keys: Sequence[str]) -> str:
    """Which other kinds of its section have an unknown key, given its pydantic location; "" if none has it."""
    *above, name = keys
    kind = f"{'.'.join(above)}.kind"
    if not (kinds := kinds_with(field_at(model, loc[:-1])[2], (name,))):
        return ""
    # pydantic adds the kind of the section to the location.
    return f"is a key of {kind}={' or '.join(kinds)}, but {kind} is {loc[-2]}; set {kind}={kinds[0]}, or leave it out"


def missing_kind(field: FieldInfo | None, given: Collection[str]) -> str:
    """Which kinds a section with the given keys may have."""
    kinds = kinds_with(field, given) or kinds_with(field, ())
    return f"the key kind is missing; set it to {'one of ' * (len(kinds) > 1)}{', '.join(map(repr, kinds))}"
