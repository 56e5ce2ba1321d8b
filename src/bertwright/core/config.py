"""The base class of recipe sections, and the identity that their values give to the artifacts built from them.

A field is *fingerprinted* (it determines the result, and is hashed if it differs from its default) or *runtime only*
(workers, device, memory, logging: it changes at most the order of summation and the elements that dropout drops, and
is not hashed). A fingerprinted field may be *extendable*: raising it continues finished work instead of invalidating
it. A field that names a file is *known by content*: the hash of the file counts instead of its path. Only values that
differ from the defaults are hashed, so a new key that is off changes no fingerprint (docs/decisions/0022).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from bertwright.core.errors import RecipeError
from bertwright.core.files import sha256_of
from bertwright.core.secrets import hide_secrets


def expand_home(path: Path) -> Path:
    """`path` with `~` at its beginning expanded to a home folder; `ValueError` if that folder is not known."""
    try:
        return path.expanduser()
    except RuntimeError as error:  # of pathlib, for a user who does not exist
        raise ValueError(f"the home folder {path.parts[0]} is not known; write the path without ~") from error


UserPath = Annotated[Path, AfterValidator(expand_home)]
"""A path in which `~` is expanded to the user's home folder, even where no shell has done so."""
ShownText = Annotated[str, AfterValidator(hide_secrets)]
"""A text that pages, cards and manifests show: secrets in it are hidden as soon as it is read."""

GIVEN = "given"
"""Placeholder in a manifest for a file that is known by its content."""
Role = Literal["fingerprinted", "extendable", "runtime_only", "known_by_content"]


def by_kind(value: Any) -> Any:
    """Expand a name to the section of that kind: `schedule = "linear"` is short for `schedule = {kind = "linear"}`."""
    return {"kind": value} if isinstance(value, str) else value


class Section(BaseModel):
    """A frozen group of settings. Unknown keys are errors; the docstring below a field is its description."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, allow_inf_nan=False)

    def __init__(self, **values: Any) -> None:
        """Validate the settings; one `RecipeError` lists every mistake, as for a recipe file."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            from bertwright.core.validation_messages import validation_messages  # not needed at every start

            raise RecipeError(validation_messages(type(self), error, type(self).__name__, {})) from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # nested sections report to the outer one


def runtime_only(default: Any, **constraints: Any) -> Any:
    """A field that changes how the work is done, never the result."""
    return Field(default, json_schema_extra={"role": "runtime_only"}, **constraints)


def extendable(default: Any, **constraints: Any) -> Any:
    """A field that may be raised after checkpoints exist: the work continues from its current state."""
    return Field(default, json_schema_extra={"role": "extendable"}, **constraints)


def known_by_content(default: Any, **constraints: Any) -> Any:
    """A field that names files: their content determines the result, not their location, so the stage that reads them
    makes their hash one of its inputs.
    """
    return Field(default, json_schema_extra={"role": "known_by_content"}, **constraints)


def role(field: FieldInfo) -> Role:
    """How a field affects the fingerprint of an artifact."""
    extra = field.json_schema_extra
    return cast(Role, extra["role"]) if isinstance(extra, dict) and "role" in extra else "fingerprinted"


def result_settings(value: Any, *, extendable: bool = True, defaults: bool = True) -> Any:
    """The JSON form of a section, or of tables and lists of sections, with the fields that determine the result.

    Files known by content appear as "given", wherever they are. `extendable=False` leaves out extendable fields.
    `defaults=False` leaves out fields that have their default value: this form is hashed, so a new key that is off
    makes nothing stale. It does not show a changed default, so the version of the stage must be raised with it.
    """
    plain = partial(result_settings, extendable=extendable, defaults=defaults)
    if isinstance(value, BaseModel):
        return {name: plain(member) for name, member in _members(value, extendable, defaults)}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return str(value) if hasattr(value, "__fspath__") else value


def _members(section: BaseModel, extendable: bool, defaults: bool) -> Iterator[tuple[str, Any]]:
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        match role(field):
            case "fingerprinted" | "extendable" as its_role if its_role == "fingerprinted" or extendable:
                if defaults or _differs(field, value, extendable):
                    yield name, value
            case "known_by_content" if defaults or value:
                yield name, GIVEN if value else value


def _differs(field: FieldInfo, value: Any, extendable: bool) -> bool:
    """Whether a value differs from the default; the kind of a union member always counts as different."""
    if field.is_required() or (get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1):
        return True
    default = field.get_default(call_default_factory=True)
    return bool(result_settings(value, extendable=extendable) != result_settings(default, extendable=extendable))


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


@dataclass(frozen=True)
class Identity:
    """Everything that determines the content of an artifact."""

    stage: str
    version: int
    """Raised when a change of the stage's code changes its result."""
    sections: Mapping[str, Any]
    """The recipe sections that the stage reads, by name."""
    inputs: Mapping[str, str]
    """Fingerprint of each input, by name."""
    extendable: bool = True
    """Whether extendable fields are part of the identity."""

    @property
    def config(self) -> dict[str, Any]:
        """Every setting that determines the result, as JSON."""
        return dict(result_settings(self.sections, extendable=self.extendable))

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that differ from their defaults: the only ones that enter the fingerprint."""
        return dict(result_settings(self.sections, extendable=self.extendable, defaults=False))

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the identity."""
        return sha256_of([self.stage, self.version, self.changed, self.inputs])
