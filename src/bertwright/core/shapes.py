"""The types of the numbers and texts in JSON files that stages write, and where a stage says what it counts.

What a stage writes down is typed in its own `shapes.py`. A count may be absent, as a stage of another version had it
not, and others may stand beside these. One that is needed and absent is refused where it is read (`files.Known`).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

Count = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Number = Annotated[float, Field(strict=True, ge=-1e15, le=1e15)]
Score = Annotated[float, Field(strict=True)] | None
"""None where there is none, or where it is no number."""
Text = Annotated[str, Field(strict=True, max_length=2**16)]
Flag = Annotated[bool, Field(strict=True)]

_PACKAGE = __name__.partition(".")[0]


@cache
def counts_of(stage: str) -> TypeAdapter[Any] | None:
    """What the counts of a stage must be, `Counts` in its `shapes.py`; None where they are not looked at.

    Made when first asked for: it takes longer than importing the types.
    """
    # The name is what a manifest says, which anyone may have written: nothing but a shapes.py of ours is imported.
    if not stage.isidentifier() or not files(_PACKAGE).joinpath(stage, "shapes.py").is_file():
        return None
    counts = getattr(import_module(f"{_PACKAGE}.{stage}.shapes"), "Counts", None)
    return TypeAdapter(counts) if counts is not None else None
