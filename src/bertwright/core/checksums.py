"""CRC-32C as TensorFlow stores it, in its data and in its checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import cast

from bertwright.core.errors import MissingExtraError


def masked_crc(data: bytes) -> int:
    """TensorFlow's masked CRC-32C of `data` (tensorflow/core/lib/hash/crc32c.h): rotated by 15 bits, and shifted."""
    crc = _crc32c()(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@cache
def _crc32c() -> Callable[[bytes], int]:
    try:
        # Imported here because it is an optional extra.
        import google_crc32c
    except ImportError as error:
        raise MissingExtraError(
            "TensorFlow's files need the package google-crc32c: pip install 'bertwright[formats]'"
        ) from error
    return cast(Callable[[bytes], int], google_crc32c.value)
