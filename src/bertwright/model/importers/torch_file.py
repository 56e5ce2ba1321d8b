"""Reads a file of `torch.save` without executing it: what it describes, and where the bytes of its tensors are.

Both formats: a zip archive with a pickle and a member for each storage (torch 1.6 and later), and before it several
pickles one after another, followed by the storages. Does not import torch. Nothing of the tensors is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeGuard

from bertwright.core.errors import ArtifactError
from bertwright.model.importers.pickle_machine import MAX_BYTES, Bounded, Built, Named, Persistent, read_pickle
from bertwright.model.importers.zip_archive import LOCAL, members_of

_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
"""What a file of the older format begins with."""
_SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "bool": 1, "uint8": 1, "int8": 1, "int16": 2}
_SIZES |= {"int32": 4, "int64": 8, "uint16": 2, "uint32": 4, "uint64": 8, "complex64": 8, "complex128": 16}
"""Bytes per element, by dtype."""
_STORAGES = {"Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Bool": "bool"}
_STORAGES |= {"Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Untyped": "uint8"}
_STORAGES |= {"ComplexFloat": "complex64", "ComplexDouble": "complex128"}
"""Dtypes of torch's storages, by the beginning of the name of the class."""
MOST_SAID = 200
"""Characters of a text in a file that an error cites."""
_MAX_DIMENSIONS = 8
_MOST_TIMES = 32
"""How often the tensors of a file may read its bytes, over all of them: tied tensors do so twice."""


@dataclass(frozen=True)
class Place:
    """Where the elements of a tensor are in a file."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    """In elements."""
    dtype: str
    start: int
    """The place of its first element in the file, in bytes."""
    length: int
    """From its first element to behind its last, in bytes."""


@dataclass(frozen=True)
class TorchFile:
    """A file of `torch.save`."""

    path: Path
    content: Any
    """What was saved: plain values, `Named`, `Built` and `Persistent`."""
    _storages: Mapping[str, tuple[int, int]]
    """The place and the length of each storage in the file, in bytes."""

    def place(self, value: Built, name: str) -> Place:
        """Where the elements of the tensor are that `value` describes. Raises `ArtifactError`, with its `name`, if the
        description is not that of a tensor inside a storage of the file."""
        try:
            return self._place(value)
        except ValueError as error:
            raise ArtifactError(
                f"the tensor {name[:MOST_SAID]} in {self.path} is damaged: {str(error)[:MOST_SAID]}. "
                "Restore the file from a copy, or save it again."
            ) from error

    def _place(self, value: Built) -> Place:
        found = _unwrapped(value)
        assert found is not None, "`place` is asked only about tensors"
        args = found.args
        if not isinstance(args, tuple) or len(args) < 4 or not isinstance(args[0], Persistent):
            raise ValueError("it has no storage")
        key, dtype, first = _storage(args[0].key)
        if str(found.of).endswith("_v3"):  # a storage of bytes, and a dtype beside it
            dtype = args[6].name if len(args) > 6 and isinstance(args[6], Named) else ""
        if (size := _SIZES.get(dtype)) is None:
            raise ValueError(f"its dtype {dtype[:40] or 'is unknown'} cannot be read")
        if (at := self._storages.get(key)) is None:
            raise ValueError(f"the file has no storage {key!r}")
        offset, shape, stride = _whole(args[1]), _numbers(args[2]), _numbers(args[3])
        if len(shape) != len(stride):
            raise ValueError(f"it has {len(shape)} dimensions, but {len(stride)} strides")
        elements, last = 1, 0
        for number, step in zip(shape, stride, strict=True):
            elements, last = elements * number, last + max(number - 1, 0) * step
        start, length = first * size + offset * size, (last + 1) * size if elements else 0
        # A tensor of more elements than its storage repeats some: only a view, never a weight.
        if start + length > at[1] or elements * size > at[1]:
            raise ValueError(
                f"it should have {elements:,} elements of {size} bytes, the last at byte {start + length:,} of its "
                f"storage, but that has {at[1]:,} bytes"
            )
        return Place(shape, stride, dtype, at[0] + start, length)


def check_lengths(path: Path, places: Mapping[str, Place]) -> None:
    """Raise `ArtifactError` if tensors of a file would take many times its size in memory, because they all read the
    same bytes."""
    if sum(place.length for place in places.values()) > _MOST_TIMES * (size := path.stat().st_size):
        raise ArtifactError(
            f"{path} has {size:,} bytes, but its tensors would take more than {_MOST_TIMES} times as many: most of "
            "them share their elements, as those of no network do. Save the state_dict of the network again."
        )


def is_tensor(value: Any) -> TypeGuard[Built]:
    """Whether a value describes a tensor."""
    return isinstance(value, Built) and _unwrapped(value) is not None


def tensors_in(content: Any, seen: set[int]) -> int:
    """Return the number of tensors in a value, of which none is in `seen`, as for `values_in`."""
    return sum(isinstance(value, Built) and _unwrapped(value) is value for value in values_in(content, seen))


def read_torch_file(path: Path) -> TorchFile:
    """Read what a file of `torch.save` describes, in either format.

    Raises `ArtifactError`, which says what is wrong, if it is no such file, or not a complete one.
    """
    size = path.stat().st_size
    try:
        with path.open("rb") as handle:
            is_zip = handle.read(len(LOCAL)) == LOCAL
            handle.seek(0)
            content, storages = _from_zip(handle, size) if is_zip else _from_pickles(handle, size)
    except (ValueError, struct.error) as error:
        raise ArtifactError(
            f"{path} is not a complete file of torch.save: {str(error)[:MOST_SAID]}. "
            "Restore it from a copy, or save it again."
        ) from error
    return TorchFile(path, content, storages)


def _from_zip(handle: IO[bytes], size: int) -> tuple[Any, dict[str, tuple[int, int]]]:
    members = members_of(handle, size)
    folder = next((name.removesuffix("data.pkl") for name in members if name.endswith("/data.pkl")), None)
    if folder is None:
        raise ValueError("its archive has no data.pkl")
    if f"{folder}constants.pkl" in members:
        raise ValueError("it is a program of TorchScript, not the weights of a network; save its state_dict")
    if order := members.get(f"{folder}byteorder"):
        handle.seek(order.start)
        if handle.read(min(order.size, 16)) != b"little":
            raise ValueError("its tensors have the byte order of another kind of machine")
    pickle = members[f"{folder}data.pkl"]
    if pickle.size > MAX_BYTES:
        raise ValueError(
            f"its data.pkl has {pickle.size:,} bytes; without the tensors, no checkpoint has {MAX_BYTES:,}"
        )
    handle.seek(pickle.start)
    content = read_pickle(Bounded(handle, pickle.start + pickle.size))
    prefix = f"{folder}data/"
    return content, {
        name.removeprefix(prefix): (member.start, member.size)
        for name, member in members.items()
        if name.startswith(prefix)
    }


def _from_pickles(handle: IO[bytes], size: int) -> tuple[Any, dict[str, tuple[int, int]]]:
    data = Bounded(handle, size)
    try:
        magic = read_pickle(data)
    except ValueError as error:
        raise ValueError("it begins neither like a zip archive nor like a pickle of torch") from error
    if magic != _MAGIC or isinstance(magic, bool) or read_pickle(data) != _PROTOCOL:
        raise ValueError("it is a pickle of another program, not of torch")
    machine = read_pickle(data)
    if not isinstance(machine, dict) or machine.get("little_endian") is not True:
        raise ValueError("its tensors have the byte order of another kind of machine")
    content, keys = read_pickle(data), read_pickle(data)
    if not isinstance(keys, list):
        raise ValueError("the list of its storages is missing")
    sizes, storages, place = _element_sizes(content), dict[str, tuple[int, int]](), data.tell()
    for key in keys:
        handle.seek(place)
        (elements,) = struct.unpack("<q", handle.read(8))
        element = sizes.get(key, 0) if isinstance(key, str) else 0
        if elements < 0 or not element or place + 8 + elements * element > size:
            raise ValueError(f"its storage at byte {place:,} should have {elements:,} elements of {element} bytes")
        storages[key] = place + 8, elements * element
        place += 8 + elements * element
    return content, storages


def _element_sizes(content: Any) -> dict[str, int]:
    """Bytes per element of each storage that the values in `content` refer to."""
    found: dict[str, int] = {}
    for value in values_in(content):
        if isinstance(value, Persistent):
            key, dtype, _ = _storage(value.key)
            found[key] = _SIZES[dtype]
    return found


def values_in(content: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """Yield all values in a value, each once, however they are nested, and itself; those whose `id` is in `seen` are
    left out, and all others added."""
    seen = set() if seen is None else seen
    rest = [content]
    while rest:
        value = rest.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        match value:
            case dict():
                rest.extend(value.values())
            case list() | tuple():
                rest.extend(value)
            case Built():
                rest.extend((value.args, value.state, value.items))
            case Persistent():
                rest.append(value.key)
            case _:
                pass


def _storage(reference: Any) -> tuple[str, str, int]:
    """The key and the dtype of a storage, and its first element that a view of it starts with."""
    match reference:
        case ("storage", Named() as kind, str() as key, _, int(), None):
            first = 0
        case ("storage", Named() as kind, str() as key, _, int()):
            first = 0
        case ("storage", Named() as kind, str() as key, _, int(), (_, int() as first, int())):
            _whole(first)
        case _:
            raise ValueError("it refers to a storage in no way that torch does")
    dtype = _STORAGES.get(kind.name.removesuffix("Storage"), "")
    if not dtype:
        raise ValueError(f"it has a storage of the kind {str(kind)[:80]}, which cannot be read")
    return key, dtype, first


def _unwrapped(value: Built, depth: int = 0) -> Built | None:
    """The description of the tensor in a parameter, or the tensor itself; None if it is neither."""
    if not isinstance(value.of, Named) or depth > 3:
        return None
    match value.of.module, value.of.name:
        case "torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2" | "_rebuild_tensor_v3":
            return value
        case "torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state":
            inner = value.args[0] if isinstance(value.args, tuple) and value.args else None
            return _unwrapped(inner, depth + 1) if isinstance(inner, Built) else None
        case "torch._tensor", "_rebuild_from_type_v2":
            function, _, args, *_ = value.args if isinstance(value.args, tuple) and len(value.args) > 2 else (0, 0, 0)
            return _unwrapped(Built(function, args), depth + 1)
        case _:
            return None


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**48:
        raise ValueError("a size in it is no whole number, or too large")
    return value


def _numbers(value: Any) -> tuple[int, ...]:
    # torch.Size, in some versions
    if isinstance(value, Built) and isinstance(value.args, tuple) and len(value.args) == 1:
        value = value.args[0]
    if not isinstance(value, tuple | list) or len(value) > _MAX_DIMENSIONS:
        raise ValueError("its shape is no list of sizes")
    return tuple(_whole(number) for number in value)
