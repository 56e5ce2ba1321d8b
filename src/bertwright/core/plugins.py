"""Members of a recipe's unions from other packages: an installed entry point, or a class named as `package:Class`.

A union lists its built-in members and one base class for plugins, and is annotated with `PLUGINS`. A kind that is not
built in is first looked up among the entry points of the base's group, then, if it has a colon, imported by that name.
Nothing is imported that no recipe names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, reduce
from importlib import import_module
from importlib.metadata import EntryPoint, distribution, entry_points, packages_distributions
from typing import Annotated, Any, ClassVar, Union, get_args

from pydantic import BaseModel, Field, GetCoreSchemaHandler, ValidationError, model_validator
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from bertwright.core.addresses import redact


class Plugin(BaseModel):
    """What the base classes for plugins have besides being a `Section`; there is one for each group of entry points."""

    group: ClassVar[str]
    """Name of the group of entry points, set by the base class of a union."""

    kind: str
    """The name of an entry point, or `package:Class`; if a section is built in Python, its class."""

    @model_validator(mode="before")
    @classmethod
    def _add_kind(cls, values: Any) -> Any:
        if cls.__module__ == "__main__":
            raise ValueError(
                f"{cls.__qualname__} is defined in a script or a notebook, where other processes cannot import it; "
                "move it to a file of its own, such as mine.py"
            )
        if isinstance(values, dict) and "kind" not in values:
            return {"kind": f"{cls.__module__}:{cls.__qualname__}", **values}
        return values

    @property
    def package(self) -> str:
        """The installed package that has the class, and its version; without one, the module."""
        return package_of(self.group, self.kind, type(self).__module__)


def is_base(candidate: Any) -> bool:
    """Whether `candidate` is the base class of a union's plugins, which is no member itself."""
    return isinstance(candidate, type) and issubclass(candidate, Plugin) and "group" in vars(candidate)


def installed_plugins(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name; `ValueError` if two packages have the same name."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        first = found.setdefault(point.name, point)
        if first.value != point.value:
            raise ValueError(
                f"two installed packages call something {point.name!r} in {group}: {first.value} and {point.value}; "
                "uninstall one, or write package:Class instead of the name"
            )
    return found


def is_known(group: str, kind: str) -> bool:
    """Whether `kind` names something outside bertwright: `package:Class`, or an entry point of `group`."""
    return ":" in kind or kind in installed_plugins(group)


def load_plugin(group: str, kind: str) -> Any:
    """The object that an installed package has under the name `kind` in `group`, or that `package:Class` names.

    Raises `ValueError` if it cannot be imported, with the reason.
    """
    points = installed_plugins(group)
    try:
        if kind in points:
            return points[kind].load()
        module, _, name = kind.partition(":")
        return reduce(getattr, name.split("."), import_module(module))
    except Exception as error:  # whatever the code of another package raises
        raise ValueError(
            f"{kind!r} cannot be imported ({type(error).__name__}: {redact(str(error))}); install its package in this "
            "environment, or add the folder of its file to PYTHONPATH"
        ) from error


def package_of(group: str, kind: str, module: str) -> str:
    """The installed package that has the plugin `kind`, and its version; without one, its `module`."""
    point = installed_plugins(group).get(kind)
    if point is not None and point.dist is not None:
        return f"{point.dist.name} {point.dist.version}"
    for name in packages_distributions().get(module.partition(".")[0], ()):
        return f"{name} {distribution(name).version}"
    return f"module {module}, which no installed package has"


@cache
def plugin_class(base: type[Plugin], kind: str) -> type[Plugin]:
    """The subclass of `base` that `kind` names; `ValueError` as `load_plugin`, or if it is something else."""
    found = load_plugin(base.group, kind)
    if not isinstance(found, type) or not issubclass(found, base):
        raise ValueError(f"{kind!r} is no {base.__name__}; give a subclass of {base.__module__}.{base.__name__}")
    if lacking := sorted(getattr(found, "__abstractmethods__", ())):
        raise ValueError(f"{kind!r} does not define {', '.join(lacking)}, which {base.__name__} requires")
    return found


def plugins_of(value: Any, key: str = "") -> Iterator[tuple[str, Plugin]]:
    """The plugins in a section, or in tables and lists of sections, each with its dotted key."""
    if isinstance(value, Plugin):
        yield key, value
    above = f"{key}." if key else ""
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from plugins_of(getattr(value, name), f"{above}{name}")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from plugins_of(inner, f"{above}{name}")
    elif isinstance(value, tuple | list):
        for index, inner in enumerate(value):
            yield from plugins_of(inner, f"{above}{index}")


def packages_of(sections: Mapping[str, Any]) -> dict[str, str]:
    """The package and version of each plugin in these sections, by `key=kind`, as a run records them."""
    return {f"{key}={plugin.kind}": plugin.package for key, plugin in plugins_of(sections)}


class _Union:
    """Annotates a union of sections, distinguished by their `kind`, that also has a base class of plugins."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of the built-in members, with plugins validated before it and saved as what they are."""
        (base,) = (member for member in get_args(source) if is_base(member))
        members = tuple(member for member in get_args(source) if member is not base)
        built_in = tuple(member.model_fields["kind"].default for member in members)
        own = handler.generate_schema(Annotated[Union[members], Field(discriminator="kind")])  # noqa: UP007

        def validate(value: Any, members: core_schema.ValidatorFunctionWrapHandler) -> Any:
            kind = value.get("kind") if isinstance(value, dict) else None
            if isinstance(value, base):
                return value
            if not isinstance(kind, str) or kind in built_in or not is_known(base.group, kind):
                return members(value)
            return _validate_section(plugin_class(base, kind), kind, value)

        def save(value: Any, members: Any, info: Any) -> Any:
            if not isinstance(value, Plugin):
                return members(value)
            return value.model_dump(mode=info.mode, exclude_none=info.exclude_none)

        saved = core_schema.wrap_serializer_function_ser_schema(save, info_arg=True, schema=own)
        return core_schema.no_info_wrap_validator_function(validate, own, serialization=saved)


PLUGINS = _Union()
"""Annotation of a union that plugins may extend."""


def _validate_section(section: type[Plugin], kind: str, value: Any) -> Plugin:
    """The section of a plugin; its mistakes are located like those of a built-in member, below its kind."""
    try:
        return section.model_validate(value)
    except ValidationError as error:
        details = [
            InitErrorDetails(
                type=_type_of(each), loc=(kind, *each["loc"]), input=each["input"], ctx=each.get("ctx", {})
            )
            for each in error.errors(include_url=False)
        ]
        raise ValidationError.from_exception_data(section.__name__, details) from None


def _type_of(detail: Any) -> Any:
    if detail["type"] in ("value_error", "assertion_error"):
        return PydanticCustomError("value_error", "{message}", {"message": detail["msg"]})
    return detail["type"]
