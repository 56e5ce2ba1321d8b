"""Finds the members of a zip archive as torch writes them: stored, not compressed, one after another.

Only places are read, never contents, so that an archive of any size takes little memory. Anything that such an archive
does not have (compression, encryption, members that overlap or lie outside, two with one name) is refused.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import IO

MAX_DIRECTORY = 32 * 2**20
"""Maximum size of the list of members, in bytes; one of 1,000 tensors has 100 kB."""
LOCAL = b"PK\x03\x04"
"""The first bytes of an archive."""
_CENTRAL, _END, _END64, _LOCATOR64 = b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_UNKNOWN_16, _UNKNOWN_32 = 0xFFFF, 0xFFFFFFFF
"""Values that say: the number is in a field of 64 bits."""


@dataclass(frozen=True)
class Member:
    """A member of an archive."""

    start: int
    """The place of its content in the file, in bytes."""
    size: int
    """The length of its content, in bytes."""


def members_of(handle: IO[bytes], size: int) -> dict[str, Member]:
    """Return the members of the archive in a file of `size` bytes, by name.

    Raises `ValueError`, which says what is wrong, if it is no such archive.
    """
    count, length, start = _directory(handle, size)
    if length > MAX_DIRECTORY or start + length > size:
        raise ValueError(f"its list of members should have {length:,} bytes at byte {start:,}")
    handle.seek(start)
    directory, place, found = handle.read(length), 0, dict[str, Member]()
    for _ in range(count):
        name, header, content, place = _entry(directory, place)
        if name in found:
            raise ValueError(f"it has two members called {name!r}")
        found[name] = Member(_content(handle, header, name, size), content)
    _check_places(found, start)
    return found


def _directory(handle: IO[bytes], size: int) -> tuple[int, int, int]:
    """The number of members, and the length and the place of the list of them."""
    # A comment of up to 64 kB may follow; torch writes none.
    tail_start = max(0, size - 22 - 2**16)
    handle.seek(tail_start)
    tail = handle.read(size - tail_start)
    place = tail.rfind(_END)
    if place < 0 or len(tail) - place < 22:
        raise ValueError("the list of members at its end is missing; it may be incomplete")
    count, length, start = struct.unpack("<HII", tail[place + 10 : place + 20])
    if count != _UNKNOWN_16 and _UNKNOWN_32 not in (length, start):
        return count, length, start
    locator = tail[max(place - 20, 0) : place]
    if locator[:4] != _LOCATOR64:
        raise ValueError("the place of its list of members is missing")
    (record,) = struct.unpack("<Q", locator[8:16])
    if record + 56 > size:
        raise ValueError(f"its list of members should be described at byte {record:,}")
    handle.seek(record)
    head = handle.read(56)
    if head[:4] != _END64:
        raise ValueError("the description of its list of members is damaged")
    return struct.unpack("<QQQ", head[32:56])


def _entry(directory: bytes, place: int) -> tuple[str, int, int, int]:
    """A member's name, the place of its header, the length of its content, and the place of the next entry."""
    if directory[place : place + 4] != _CENTRAL or len(directory) - place < 46:
        raise ValueError("its list of members is damaged")
    flags, method = struct.unpack("<HH", directory[place + 8 : place + 12])
    packed, content, names, extras, comments = struct.unpack("<IIHHH", directory[place + 20 : place + 34])
    (header,) = struct.unpack("<I", directory[place + 42 : place + 46])
    raw = directory[place + 46 : place + 46 + names]
    extra = directory[place + 46 + names : place + 46 + names + extras]
    if len(raw) != names or len(extra) != extras:
        raise ValueError("its list of members is damaged")
    name = raw.decode("utf-8", "surrogateescape")
    if method or flags & 1:
        raise ValueError(
            f"its member {name!r} is {'encrypted' if flags & 1 else 'compressed'}, as torch never writes it"
        )
    content, packed, header = _of_64_bits(extra, [content, packed, header])
    if packed != content:
        raise ValueError(f"its member {name!r} has {packed:,} bytes, but {content:,} after unpacking")
    return name, header, content, place + 46 + names + extras + comments


def _of_64_bits(extra: bytes, values: list[int]) -> list[int]:
    """Replace the values that do not fit into 32 bits by those of an entry's extra field."""
    if _UNKNOWN_32 not in values:
        return values
    place = 0
    while place + 4 <= len(extra):
        kind, length = struct.unpack("<HH", extra[place : place + 4])
        if kind == 1:
            numbers = iter(struct.unpack(f"<{length // 8}Q", extra[place + 4 : place + 4 + length // 8 * 8]))
            return [next(numbers, value) if value == _UNKNOWN_32 else value for value in values]
        place += 4 + length
    return values


def _content(handle: IO[bytes], header: int, name: str, size: int) -> int:
    """The place of a member's content, which follows its own header."""
    if header + 30 > size:
        raise ValueError(f"its member {name!r} should be at byte {header:,}, but the file has {size:,}")
    handle.seek(header)
    head = handle.read(30)
    names, extras = struct.unpack("<HH", head[26:30])
    if head[:4] != LOCAL or handle.read(names).decode("utf-8", "surrogateescape") != name:
        raise ValueError(f"its member {name!r} is not where its list of members says")
    return header + 30 + names + extras


def _check_places(found: dict[str, Member], end: int) -> None:
    """Raise `ValueError` if members overlap, or reach into the list of members."""
    reached = 0
    for name, member in sorted(found.items(), key=lambda item: (item[1].start, item[1].size)):
        if member.start < reached or member.start + member.size > end:
            raise ValueError(
                f"its member {name!r} is at bytes {member.start:,} to {member.start + member.size:,}, where it "
                "overlaps another or the end"
            )
        reached = member.start + member.size
