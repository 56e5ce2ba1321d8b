"""Types of the numbers and texts in the JSON files that stages write, and access to the types of a stage's manifest.

Each stage types what it writes in its own `shapes.py`: all of its counts, and those of its settings that others read.
A value may be absent, because other versions of the stage lacked it, and extra values are allowed. A required value
that is absent is refused where it is read (`files.Known`).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

Count = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Number = Annotated[float, Field(strict=True, ge=-1e15, le=1e15)]
Score = Annotated[float, Field(strict=True)] | None
"""None if there is no score, or if it is not a finite number."""
Text = Annotated[str, Field(strict=True, max_length=2**16)]
Flag = Annotated[bool, Field(strict=True)]


class Unfinished(TypedDict):
    """The checkpoint that represents an unfinished training, its step, and the total number of steps."""

    checkpoint: Text
    step: Count
    steps: Count
    phase: Count


_PACKAGE = __name__.partition(".")[0]


@cache
def counts_of(stage: str) -> TypeAdapter[Any] | None:
    """The type of a stage's counts, `Counts` in its `shapes.py`; None if they are not checked.

    Built on first use, because building it takes longer than importing the types.
    """
    return _type_of(stage, "Counts")


@cache
def settings_of(stage: str) -> TypeAdapter[Any] | None:
    """The type of a stage's settings, `Settings` in its `shapes.py`, built on first use; None if they are not
    checked."""
    # A checkpoint has the settings of its training.
    return _type_of("train" if stage == "checkpoint" else stage, "Settings")


def _type_of(stage: str, name: str) -> TypeAdapter[Any] | None:
    # By name, because core imports no stage; every reader of a folder reads its manifest, and has to check it.
    # The name comes from a manifest, which is untrusted: nothing but a shapes.py of this package is imported.
    if not stage.isidentifier() or not files(_PACKAGE).joinpath(stage, "shapes.py").is_file():
        return None
    shape = getattr(import_module(f"{_PACKAGE}.{stage}.shapes"), name, None)
    return TypeAdapter(shape) if shape is not None else None
