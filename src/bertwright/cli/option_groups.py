"""Groups options of a verb into one parameter: a dataclass whose fields are the options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def grouped(verb: Callable[..., None]) -> Callable[..., None]:
    """`verb` with a signature for typer: the fields of each dataclass parameter replace it, in their order."""
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, type[Any]] = {
        name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)
    }
    parameters: list[Parameter] = []
    for name, given in signature(verb).parameters.items():
        # Keyword-only, because of other parameters none without a default may follow one with a default.
        own = given.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)
        parameters += _of_fields(groups[name]) if name in groups else [own]

    def called(**values: Any) -> None:
        members = {name: {field.name: values.pop(field.name) for field in fields(of)} for name, of in groups.items()}
        verb(**values, **{name: of(**members[name]) for name, of in groups.items()})

    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    # typer takes the types from here, and everything else from the signature.
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    called.__doc__ = verb.__doc__
    return called


def _of_fields(group: type[Any]) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
