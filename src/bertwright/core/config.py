"""The base of every recipe section: frozen, strict about unknown keys, each field documented and marked.

A field is *what* (part of the result, hashed into fingerprints) or *how* (workers, device, memory, logging:
changes nothing in the result and is not hashed). A *what* field may be *extendable*: raising it continues
finished work instead of contradicting it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from bertwright.core.errors import RecipeError
from bertwright.core.mistakes import mistakes

UserPath = Annotated[Path, AfterValidator(Path.expanduser)]
"""A path; `~` is the user's home folder also where no shell has seen it."""


class Section(BaseModel):
    """A frozen group of settings. Unknown keys are errors; the docstring below a field is its description."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    def __init__(self, **values: Any) -> None:
        """Check the settings; one `RecipeError` lists every mistake, as it does for those of a file."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise RecipeError(mistakes(type(self), error, type(self).__name__, {})) from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # sections inside others report to those


def how(default: Any, **constraints: Any) -> Any:
    """A field that changes how the work is done, never the result."""
    return Field(default, json_schema_extra={"role": "how"}, **constraints)


def extendable(default: Any, **constraints: Any) -> Any:
    """A field that may be raised after checkpoints exist: the work goes on from where it stands."""
    return Field(default, json_schema_extra={"role": "extendable"}, **constraints)


def what(section: BaseModel, *, extendable: bool = True) -> dict[str, Any]:
    """The JSON form of the fields that decide the result; with `extendable=False` also without those that may grow."""
    values: dict[str, Any] = {}
    for name, field in type(section).model_fields.items():
        extra = field.json_schema_extra
        role = extra.get("role") if isinstance(extra, dict) else None
        if role == "how" or (role == "extendable" and not extendable):
            continue
        values[name] = _plain(getattr(section, name), extendable)
    return values


def _plain(value: Any, extendable: bool) -> Any:
    if isinstance(value, BaseModel):
        return what(value, extendable=extendable)
    if isinstance(value, tuple | list):
        return [_plain(item, extendable) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item, extendable) for key, item in value.items()}
    return str(value) if hasattr(value, "__fspath__") else value


def differences(old: Any, new: Any, prefix: str = "") -> list[str]:
    """The dotted keys in which two JSON values differ, in order, each as `key: old -> new`."""
    if isinstance(old, dict) and isinstance(new, dict):
        found: list[str] = []
        for key in [*old, *(k for k in new if k not in old)]:
            found += differences(old.get(key), new.get(key), f"{prefix}.{key}" if prefix else str(key))
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [d for i, (a, b) in enumerate(zip(old, new, strict=True)) for d in differences(a, b, f"{prefix}.{i}")]
    return [] if old == new else [f"{prefix}: {_short(old)} -> {_short(new)}"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
