"""Reads and checks the header of a safetensors file, without the library.

The format (https://huggingface.co/docs/safetensors): 8 bytes with the header size, the header as JSON, the tensors.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from bertwright.core.errors import ArtifactError
from bertwright.core.files import naming
from bertwright.core.json_values import parse_json

MAX_HEAD = 16 * 2**20
"""Maximum size of a header in bytes; the header of 1,000 tensors has 100 kB."""
_SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2}
_SIZES |= {"I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8}
"""Bytes per element, by dtype."""
Size = Annotated[int, Field(strict=True, ge=0, lt=2**48)]
_ENTRY = TypeAdapter(dict[str, Any])
_SHAPE = TypeAdapter(Annotated[list[Size], Field(max_length=8)])
_PLACE = TypeAdapter(tuple[Size, Size])


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor by name, as `tensor_headers`."""
    return {name: shape for name, (_, shape) in tensor_headers(path).items()}


def tensor_headers(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The dtype, as the format names it, and the shape of each tensor by name, from the header alone.

    Raises `ArtifactError` unless `path` is a safetensors file that its tensors fill without gaps or overlaps.
    """
    try:
        return _headers(path)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        malformed = isinstance(error, ValidationError) or not isinstance(error, ValueError)
        reason = "its header is malformed" if malformed else error
        raise ArtifactError(
            f"{path} is not a complete safetensors file: {reason}. Restore it from a copy, or make it again."
        ) from error


def _headers(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    size = path.stat().st_size
    with naming(path), path.open("rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        # The first eight bytes of a corrupt file can announce a header of exabytes.
        if size < 8 or length > min(MAX_HEAD, size - 8):
            raise ValueError(f"its header should have {length:,} bytes, but the file has {size:,}")
        head = parse_json(handle.read(length))
    entries = {name: _ENTRY.validate_python(entry) for name, entry in head.items() if name != "__metadata__"}
    shapes, end = {name: tuple(_SHAPE.validate_python(entry["shape"])) for name, entry in entries.items()}, 0
    for first, stop, name in sorted((*_PLACE.validate_python(e["data_offsets"]), name) for name, e in entries.items()):
        needed = math.prod(shapes[name]) * _SIZES[entries[name]["dtype"]]
        if first != end or stop - first != needed:
            raise ValueError(
                f"a tensor is at bytes {first:,} to {stop:,}, but it needs {needed:,} bytes from byte {end:,} on"
            )
        end = stop
    if 8 + length + end != size:
        raise ValueError(f"its tensors end at byte {8 + length + end:,}, but the file ends at byte {size:,}")
    return {name: (entries[name]["dtype"], shape) for name, shape in shapes.items()}
