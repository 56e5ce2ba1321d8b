"""The members of a union of sections, also where it has a single one yet."""

from typing import Any

from pydantic import BaseModel

from bertwright.core.section_fields import members


def sections_of(union: Any) -> list[type[BaseModel]]:
    """The sections of a union, in order."""
    return [member for member in members(union) if isinstance(member, type) and issubclass(member, BaseModel)]
